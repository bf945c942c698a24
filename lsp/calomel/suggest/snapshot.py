"""What is asked: by the editor, and of whoever answers, which is handed all that it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from calomel.code.names import COMMON, Names
from calomel.infer.completer import Draft, Kind, ModelInfo
from calomel.prompts.parts import Hunk, RegionBounds, line_start, next_line, region_around
from calomel.selectivity.proposal import Recent
from calomel.suggest.drafts.evidence import EditDraft
from calomel.suggest.recent import Past
from calomel.workspace.documents import Document
from calomel.workspace.syntax import CodeSnapshot
from calomel.workspace.workspace import Situation


class Trigger(StrEnum):
    """What made the editor ask.

    EDIT: the text changed. CURSOR: the cursor moved. EXPLICIT: the user pressed a key for it; debounce, cooldowns and
    earlier rejections do not hold it back.
    """

    EDIT = "edit"
    CURSOR = "cursor"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True)
class Selected:
    """The selected item of the editor's completion popup: what `start:end` becomes if it is accepted."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A problem that the editor shows, as a hint of where the next edit may be. Offsets in the document's text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the editor.

    Attributes:
        revision: of the document, whose text `offset` is in.
        version: of the document that it asks about; None for the newest.
        elsewhere: an edit of another document may be shown, too.
        drafts: what is left to do in a document other than the one the editor asked about; None in that one.
    """

    kind: Kind
    document: Document
    offset: int
    trigger: Trigger
    revision: int
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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One cursor in one document at one moment, with all that its suggestions depend on.

    Plain data that nobody changes: what makes an answer is handed this and asks neither the editor nor the workspace.
    Only the door asks the workspace again.

    Attributes:
        situation: the text, and everything else that goes into a prompt.
        trigger: what made the editor ask.
        info: the model that is asked.
        path: of the document, as in hunks; None when all are its own.
        recent: the user's recent edits.
        since_edit: seconds since the last change.
        decisions: how many of the last suggestions were accepted, and how many rejected.
        max_tokens: limit of the answer.
        context_tokens: limit of the prompt.
        region: how much the model may rewrite at once.
        past: what the last edits of this document did, however long ago, and which of them were undone.
        own: the last edits of this document, newest last, unless they were just undone.
        hunks: the last edits of all documents that rules go on with, newest last.
        making: the edit in progress. It has not settled, but says most about the next one.
        continuing: how the line at the cursor goes on in other places.
        selected: the completion item that the editor has selected.
        diagnostics: problems that the editor shows, as hints.
        drafts: what is left to do, if that is all that is asked about; None for whatever continues the last edits.
        names: of the document's language.
        place: where the cursor is: `code`, `comment` or `string`; empty if unknown.
        code: its syntax; None if that is unknown.
        lines: limit of a text at the cursor; None without one.
        extended: the region at the cursor is larger than usual.
        finishing: text for the cursor may finish what was left unfinished there.
        secrets: of this text and of other open documents: no suggestion writes them.
        within: the part of the text that may be rewritten: all separate edits in it are offered. Without it, only one.
    """

    situation: Situation
    trigger: Trigger
    info: ModelInfo
    path: str | None
    recent: Sequence[Recent]
    since_edit: float | None
    decisions: tuple[int, int]
    max_tokens: int
    context_tokens: int
    region: RegionBounds = field(default_factory=RegionBounds)
    past: Past = field(default_factory=Past)
    own: tuple[Hunk, ...] = ()
    hunks: tuple[Hunk, ...] = ()
    making: tuple[Hunk, ...] = ()
    continuing: tuple[Draft, ...] = ()
    selected: Selected | None = None
    diagnostics: Sequence[Diagnostic] = ()
    drafts: tuple[EditDraft, ...] | None = None
    names: Names = COMMON
    place: str = ""
    code: CodeSnapshot | None = None
    lines: int | None = None
    extended: bool = False
    finishing: bool = False
    secrets: frozenset[str] = frozenset()
    within: tuple[int, int] | None = None

    @property
    def explicit(self) -> bool:
        """Whether the user pressed a key for it."""
        return self.trigger is Trigger.EXPLICIT

    @property
    def text(self) -> str:
        """The document's."""
        return self.situation.text

    def errors(self, start: int, end: int, text: str) -> tuple[int, int] | None:
        """How many syntax errors there are, and how many with `start:end` replaced by a text; None if unknown."""
        return None if self.code is None else self.code.errors(start, end, text)

    def region_at(self, place: int, bounds: RegionBounds) -> tuple[int, int]:
        """The lines around a place that a model rewrites: a whole function, or the whole text, if it is small."""
        text = self.text
        start, end = region_around(text, place, bounds)
        # Where a part is given, that is what may be rewritten.
        scope = None if self.code is None or self.within is not None else self.code.scope(place)
        for first, last in ((0, len(text)), scope or (start, end)):
            low, high = min(start, line_start(text, first)), max(end, next_line(text, max(first, last - 1)))
            if text.count("\n", low, high) <= bounds.whole and high - low <= bounds.characters:
                return low, high
        return start, end
