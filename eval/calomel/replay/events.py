"""The events of an editing log, whatever its format: all readers produce these.

Offsets count code points from 0. Times are seconds from the start of the log and never go backwards; a reader whose log
has no times, or wrong ones, makes times up and says so in a `Problem` or in its own documentation.

The events of a log are in order. An `Offered` comes after the text that it was offered for and before the change that
follows; an `Accepted` comes before the `Changed` (with cause `accept`) that it causes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final, Literal, TypeAlias

from calomel.code.languages import grammar_of
from calomel.prompts.parts import Edit, edited

# By hand, by accepting a suggestion, or otherwise: pasted, undone, formatted, written by a tool.
Cause: TypeAlias = Literal["typed", "accept", "other"]
LogKind: TypeAlias = Literal["recording", "keystrokes", "git", "story", "scenario"]


@dataclass(frozen=True, slots=True)
class Happened:
    """The fields that all events share.

    Attributes:
        entry: of the log, from 0.
        time: seconds from the start of the log.
        document: its path, as in prompts; open already, except for `Opened`.
    """

    entry: int
    time: float
    document: str


@dataclass(frozen=True, slots=True)
class Opened(Happened):
    """A document was opened with this text. A second one for the same document replaces its whole text.

    Attributes:
        language_id: the language, as in editors.
        text: the whole text.
    """

    language_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Changed(Happened):
    """The text of a document changed, all edits at once.

    Attributes:
        edits: sorted, not overlapping, in offsets of the text before; never empty.
        cause: how it came about, as far as the log tells.
    """

    edits: tuple[Edit, ...]
    cause: Cause = "typed"


@dataclass(frozen=True, slots=True)
class Selected(Happened):
    """The cursor moved to `offset`; `anchor` is the other end of the selection, the same when nothing is selected.

    Only the first of several cursors; `cursors` says how many there were.
    """

    anchor: int
    offset: int
    cursors: int = 1


@dataclass(frozen=True, slots=True)
class Focused(Happened):
    """The person switched to this document."""


@dataclass(frozen=True, slots=True)
class Closed(Happened):
    """The document was closed; an `Opened` may reopen it."""


@dataclass(frozen=True, slots=True)
class Offered(Happened):
    """The recorded assistant showed this.

    Attributes:
        edits: in offsets of the text at `time`.
        source: the assistant's name.
        request: the same for all offers of one answer.
        inline_edit: a next edit, not ghost text at the cursor.
        asked: seconds from the start of the log at which the editor asked for it; `time` is when it arrived.
    """

    edits: tuple[Edit, ...]
    source: str
    request: str
    inline_edit: bool = False
    asked: float = 0.0


@dataclass(frozen=True, slots=True)
class Accepted(Happened):
    """The recorded person accepted a suggestion. The `Changed` with cause `accept` that it caused follows at once."""

    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Expected(Happened):
    """A scenario asks here: which edit comes next?

    Attributes:
        alternatives: texts of the whole document, each of them right. None among them: silence is right.
        offset: the cursor for this question; None: where it is.
        manual: the person asked by a key, so that the rules for when to stay silent do not apply.
        name: distinguishes the questions of one log.
    """

    alternatives: tuple[str | None, ...]
    offset: int | None = None
    manual: bool = False
    name: str = ""


Event: TypeAlias = Opened | Changed | Selected | Focused | Closed | Offered | Accepted | Expected


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the log was wrong: which entry, what, and what was done about it."""

    entry: int
    message: str


@dataclass(slots=True)
class Checks:
    """What a log says about its own texts, compared with the texts that the replay arrived at.

    Attributes:
        content_ids_right: hashes of whole texts in the log that match.
        content_ids_wrong: those that do not.
        end_content_right: whether the final text is the one the log ends with; None when it names none.
        accepts: how often the recorded person accepted a suggestion.
    """

    content_ids_right: int = 0
    content_ids_wrong: int = 0
    end_content_right: bool | None = None
    accepts: int = 0


@dataclass(slots=True)
class ReplayLog:
    """A log that was read.

    Attributes:
        name: for tables and reports.
        kind: of its format.
        events: in order.
        problems: in order of entries; nothing was left out without one.
        checks: of the log's own hashes.
        metadata: further data of the format, by name, as text.
        project: the other files of the package, by path.
    """

    name: str
    kind: LogKind
    events: Sequence[Event]
    problems: list[Problem] = field(default_factory=list)
    checks: Checks = field(default_factory=Checks)
    metadata: dict[str, str] = field(default_factory=dict)
    project: Mapping[str, str] = field(default_factory=dict)


class LogError(Exception):
    """Nothing of a log can be read; the message is a sentence for the user."""


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """The text after a change. Raises ValueError for edits outside of it, out of order or overlapping."""
    at = 0
    for edit in edits:
        if not at <= edit.start <= edit.end <= len(text):
            raise ValueError(f"range {edit.start}-{edit.end} does not fit a text of {len(text)} characters")
        at = edit.end
    return edited(text, edits)


# For files without a grammar, whose language is not named like their suffix;
# https://code.visualstudio.com/docs/languages/identifiers
_BY_SUFFIX: Final = {
    ".kt": "kotlin", ".md": "markdown", ".tf": "terraform", ".yml": "yaml", ".zsh": "shellscript",
    **{f".{name}": name for name in ("lua", "php", "scala", "scss", "sql", "svelte", "swift", "toml", "vue", "xml")},
    ".yaml": "yaml",
}  # fmt: skip
_BY_NAME: Final = frozenset({"dockerfile", "makefile"})


def language_of(path: str) -> str:
    """The language id for a path with forward slashes; `plaintext` when unknown."""
    name, suffix = PurePosixPath(path).name.lower(), PurePosixPath(path).suffix.lower()
    grammar = grammar_of(None, path)
    if name in _BY_NAME or grammar is None:
        return name if name in _BY_NAME else _BY_SUFFIX.get(suffix, "plaintext")
    return grammar.ids[0]


def suffix_of(language_id: str) -> str:
    """A file suffix of this language; `.txt` when none is known."""
    grammar = grammar_of(language_id)
    others = (suffix for suffix, language in _BY_SUFFIX.items() if language == language_id)
    return next(others, ".txt") if grammar is None else grammar.suffixes[0]
