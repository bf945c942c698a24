"""The prompt log: what the model was asked and what it proposed, for aligning it with what the user thought of that.

Only for users who turned `log.outcome_text` on. It lies beside the outcome log and is written in the same way: readable
by its user alone, renamed when full. What became of a suggestion stands in the outcome log, under the same session and
id.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from msgspec import Raw, json

from calomel.prompts.parts import PromptParts
from calomel.prompts.tokenizer import encodable
from calomel.suggest.completer import CompleteRequest, Kind
from calomel.suggest.offers import Outcome
from calomel.suggest.outcome_log import History, LineLog
from calomel.suggest.wire import FieldError, decode_request, encode, read_json

# Grows when an older reader would misunderstand a line.
FORMAT: Final = 1
# A prompt of 2,048 tokens is about 8,000 bytes: some 5,000 prompts in all, many times what an alignment needs.
KEPT_FILES: Final = 4
# No prompt of a model that runs beside an editor is longer.
_LONGEST_LINE: Final = 500_000
# A suggestion is written down once, whatever becomes of it; more than these are not undecided at a time.
_REMEMBERED: Final = 512

Mask = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class PromptRecord:
    """One line.

    Attributes:
        session, id: of the suggestion, as in the outcome log.
        kind: `fill` or `edit`.
        request: what the model was asked, secrets masked, without drafts.
        text: what was proposed, secrets masked: the text of the hole, or what the region becomes.
    """

    session: str
    id: str
    kind: Kind
    request: CompleteRequest
    text: str


@dataclass(frozen=True, slots=True)
class _Line:
    session: str
    id: str
    text: str
    request: Raw


def prompt_log_path(outcomes: Path) -> Path:
    """Where the prompts lie that belong to an outcome log."""
    return outcomes.with_name("prompts.jsonl")


class PromptLog(LineLog):
    """Appends prompts to a file, each once; nothing without a `mask`."""

    what = "Prompts of suggestions"
    usually_kept = KEPT_FILES

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, **options)
        self._known: OrderedDict[str, None] = OrderedDict()

    def record(self, outcome: Outcome) -> None:
        """Keep the question of a suggestion, the first time that something is said about it."""
        request, mask = outcome.request, self.mask
        if request is None or mask is None or outcome.id in self._known:
            return
        self._known[outcome.id] = None
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        self.write(lambda: self._line(outcome, request, mask))

    def _line(self, outcome: Outcome, request: CompleteRequest, mask: Mask) -> bytes | None:
        try:
            line = prompt_line(outcome.id, self._session, request, outcome.proposed, time=self._wall(), mask=mask)
        except FieldError:
            # What is not valid Unicode cannot be asked again.
            return None
        return line if len(line) <= _LONGEST_LINE else None


def prompt_line(name: str, session: str, request: CompleteRequest, text: str, *, time: float, mask: Mask) -> bytes:
    """The line of a suggestion, with its end. Raises FieldError where a text is not valid Unicode."""
    parts = request.parts
    # Drafts are guesses that nobody saw.
    asked = encode(replace(request, parts=_masked(parts, mask), drafts=(), deadline=None))
    head = {"format": FORMAT, "time": round(time, 3), "session": session, "id": name, "kind": request.kind}
    tail = {"text": encodable(_masked_between(parts, text, mask))}
    return json.encode({**head, "request": Raw(asked), **tail}) + b"\n"


def read_prompts(path: Path) -> History[PromptRecord]:
    """The records of a log and of its rotated files; none without a file. Raises OSError for an unreadable one."""
    return History.of(path, prompt_of)


def prompt_of(line: bytes) -> PromptRecord:
    """The record of one line. Raises FieldError for a line that is none."""
    found = read_json(line, _Line)
    request = decode_request(bytes(found.request))
    return PromptRecord(found.session, found.id, request.kind, request, found.text)


def _masked(parts: PromptParts, mask: Mask) -> PromptParts:
    """What is asked is masked before it is asked; should a way be found around that, it ends here."""
    region = parts.region
    return replace(
        parts,
        related=tuple(replace(each, text=mask(each.text)) for each in parts.related),
        far=tuple(replace(each, text=mask(each.text)) for each in parts.far),
        edits=tuple(replace(each, before=mask(each.before), after=mask(each.after)) for each in parts.edits),
        prefix=mask(parts.prefix),
        suffix=mask(parts.suffix),
        region=None if region is None else replace(region, text=mask(region.text)),
    )


def _masked_between(parts: PromptParts, text: str, mask: Mask) -> str:
    """A proposed text, masked in its line: what stands before it may say that it is a password."""
    before = parts.prefix[max(parts.prefix.rfind("\n"), parts.prefix.rfind("\r")) + 1 :]
    behind = parts.suffix.split("\n", 1)[0]
    return mask(f"{before}{text}{behind}")[len(before) : len(before) + len(text)]
