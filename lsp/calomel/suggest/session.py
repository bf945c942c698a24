"""Everything that one editor's suggestions share."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from calomel.infer.client import ModelClient
from calomel.infer.completer import Kind
from calomel.prompts.parts import Hunk
from calomel.suggest.cache import Cache
from calomel.suggest.candidates import CandidateSource
from calomel.suggest.drafts.evidence import EditDraft
from calomel.suggest.edit import Planned
from calomel.suggest.ledger import Ledger
from calomel.suggest.offers import Place
from calomel.suggest.pace import Cooldown, Debounce, Latency, SingleFlight
from calomel.suggest.question import Diagnostic, Selected, Trigger
from calomel.suggest.recent import Past, RecentEdits, past_of
from calomel.suggest.silence import SilenceReason, Status
from calomel.workspace.documents import Document, TextChange
from calomel.workspace.history import prompt_path
from calomel.workspace.longest_match import LongestMatch
from calomel.workspace.privacy import content_refusal
from calomel.workspace.settings import SuggestSettings
from calomel.workspace.workspace import Workspace


class Switches:
    """Whether suggestions are on: the settings, overridden by what the user turned on or off by command since."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.snoozed_until: float | None = None
        self._clock = clock
        self._by_hand: dict[tuple[str, str], bool] = {}

    def toggle(self, scope: str, name: str | None, settings: SuggestSettings, *, enabled: bool | None) -> bool:
        """Turn suggestions on or off by command. Returns the new state.

        Args:
            scope: `global`, `language` or `file`.
            name: the language id or the URI.
            settings: the defaults.
            enabled: whether to turn them on; None toggles.

        Raises:
            ValueError: unknown scope, or the name that the scope needs is missing.
        """
        defaults = {"global": settings.enabled, "language": settings.language_enabled(name or ""), "file": True}
        if scope not in defaults or (name is None and scope != "global"):
            raise ValueError(f"the scope {scope!r} is unknown or incomplete")
        key = scope, "" if scope == "global" else str(name)
        self._by_hand[key] = not self._by_hand.get(key, defaults[scope]) if enabled is None else enabled
        return self._by_hand[key]

    def off(self, settings: SuggestSettings, document: Document | None = None) -> SilenceReason | None:
        """Why suggestions are off in a document, or in all; None when they are on."""
        if not self._by_hand.get(("global", ""), settings.enabled):
            return SilenceReason.OFF_GLOBALLY
        if self.snoozed_until is not None and self._clock() < self.snoozed_until:
            return SilenceReason.SNOOZED
        if document is None:
            return None
        if not self._by_hand.get(("file", document.uri), True):
            return SilenceReason.OFF_FILE
        language = document.language_id
        by_language = self._by_hand.get(("language", language), settings.language_enabled(language))
        return None if by_language else SilenceReason.OFF_LANGUAGE


@dataclass(slots=True)
class Cursors:
    """The changes of one document in the last message from the editor.

    Attributes:
        version: of the document before these changes.
        last: the last of them.
        several: some of them are alike, at separate places.
        places: start and end of each of them in the text after all of them.
    """

    version: int | None = None
    last: TextChange | None = None
    several: bool = False
    places: list[tuple[int, int]] = field(default_factory=list)

    def changed(self, version: int | None, change: TextChange, *, by_keys: bool = True) -> None:
        """One change; all changes of one message have the same version, that of the document before it.

        `by_keys`: it may be typed; an accepted suggestion or an undo is not.
        """
        same_message = version is not None and version == self.version and self.last is not None
        if not by_keys:
            self.several = False
        elif same_message and self.last is not None:
            alike = change.inserted == self.last.inserted and len(change.removed) == len(self.last.removed)
            self.several = self.several or (alike and not _continues(self.last, change))
        else:
            self.several = False
        end = change.start + len(change.inserted)
        by = end - change.end
        moved = [
            (start + by, stop + by) if change.end <= start else (start, stop)
            for start, stop in (self.places if same_message else ())
        ]
        self.places = [*moved, (change.start, end)]
        self.version, self.last = version, change

    def several_at(self, offset: int) -> bool:
        """Whether several cursors type, one of them at `offset`; if none is there, a formatter made the changes."""
        return self.several and any(start <= offset <= end for start, end in self.places)


def _continues(before: TextChange, change: TextChange) -> bool:
    """Whether a change touches the result of the one before it: a repeated key, sent in one message."""
    return change.end >= before.start and change.start <= before.start + len(before.inserted)


# The same number as in Copilot.
_REMEMBERED: Final = 20


class Rejections:
    """The last rejected suggestions, whose places follow the changes of the text.

    Once something else changes on its lines or next to them, a rejected suggestion may be offered again.
    """

    def __init__(self) -> None:
        self._known: list[tuple[str, Place]] = []

    def add(self, uri: str, text: str, edits: Sequence[Planned]) -> None:
        """Remember that `edits` of `text` were rejected."""
        if edits and all(edit.fits(text) for edit in edits):
            self._known.append((uri, Place.with_lines(text, edits)))
            del self._known[:-_REMEMBERED]

    def has(self, uri: str, text: str, edits: Sequence[Planned]) -> bool:
        """Whether the user rejected these edits of `text`, at least one, at this place."""
        place = Place.of(text, edits)
        return any(known == uri and rejected.same(place, text) for known, rejected in self._known)

    def changed(self, uri: str, change: TextChange) -> None:
        """Follow one change of the text."""
        for known, place in self._known:
            if known == uri:
                place.changed(change)

    def closed(self, uri: str) -> None:
        """Forget a document."""
        self._known = [(known, place) for known, place in self._known if known != uri]


_LOOK_AGAIN_SECONDS: Final = 5.0


class DocumentState:
    """What is known of one document, kept up to date with its changes.

    Attributes:
        recent: the user's recent edits.
        cursors: whether there are several.
        extended: the last suggestion here was accepted, so the next region is larger.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.recent = RecentEdits(clock)
        self.cursors = Cursors()
        self.extended = False
        self._clock = clock
        self._content: tuple[str, float] | None = None

    def unfit(self, document: Document) -> str:
        """Why the text is not one that a person wrote; checked again every few seconds, not at each key."""
        now = self._clock()
        if self._content is None or now - self._content[1] > _LOOK_AGAIN_SECONDS:
            self._content = content_refusal(document.text) or "", now
        return self._content[0]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of the editor.

    Attributes:
        version: of the document that it asks about; None for the newest.
        elsewhere: an edit of another document may be shown, too.
        drafts: what is left to do in a document other than the one the editor asked about; None in that one.
    """

    kind: Kind
    document: Document
    offset: int
    trigger: Trigger
    selected: Selected | None = None
    version: int | None = None
    diagnostics: Sequence[Diagnostic] = ()
    elsewhere: bool = False
    drafts: tuple[EditDraft, ...] | None = None

    @property
    def explicit(self) -> bool:
        """Whether the user pressed a key for it."""
        return self.trigger is Trigger.EXPLICIT

    @property
    def before(self) -> str:
        """The character before the cursor, or nothing."""
        return self.document.text[max(0, self.offset - 1) : self.offset]


@dataclass(slots=True)
class Session:
    """One editor: what is open, what was asked, offered and decided, and how to reach the model.

    `unlikely`: by URI, the revision and the drafts for which no edit from elsewhere was offered.
    """

    workspace: Workspace
    settings: SuggestSettings
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    rng: random.Random
    model: ModelClient
    source: CandidateSource
    ledger: Ledger
    cooldown: Cooldown
    debounce: Debounce
    switches: Switches
    shows_text: bool = False
    matches: LongestMatch = field(init=False)
    flight: SingleFlight = field(default_factory=SingleFlight)
    cache: Cache = field(default_factory=Cache)
    rejections: Rejections = field(default_factory=Rejections)
    latency: Latency = field(default_factory=Latency)
    tally: Status = field(default_factory=Status)
    states: dict[str, DocumentState] = field(default_factory=dict)
    unlikely: dict[str, tuple[int, tuple[EditDraft, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look for what repeats itself only where a model may see it."""
        self.matches = LongestMatch(shows=self.workspace.shows_line)

    def state(self, uri: str) -> DocumentState:
        """The state kept for a document."""
        if uri not in self.states:
            self.states[uri] = DocumentState(self.clock)
        return self.states[uri]

    def last_edits(self, document: Document) -> tuple[Hunk, ...]:
        """The last edits of all documents, newest last, including the one in progress in this document."""
        history, path = self.workspace.history, prompt_path(document)
        return (*history.settled(), *(hunk for hunk in history.open_edit() if hunk.path == path))

    def past(self, document: Document) -> Past:
        """What the last edits of a document did."""
        return past_of(document.text, self.last_edits(document), prompt_path(document))
