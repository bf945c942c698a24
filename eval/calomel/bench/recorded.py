"""`calomel bench edits --recorded`: recorded answers of other makers' models, as they are and through Calomel.

A folder has, for every scenario, a folder of `PROVIDER.ndjson`: the requests that a client sent to a model, and its
answers. Each answer leads to a text of the scenario's document. Three things are scored: that text, the first offer
that Calomel makes of it, and all offers, taken one after another until there is silence.

The format is that of cursortab.nvim's suite (MIT): lines of JSON whose `kind` is `request` or `response`, with the body
in base64. How a provider writes regions and answers is known for those that the suite has.
"""

from __future__ import annotations

import asyncio
import base64
import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from calomel.bench.room import Room
from calomel.bench.suite import Case, CaseScore, Reply, SuiteError, read_suite, score_case, score_suite
from calomel.infer.completer import CANVAS, Candidate, CompleteAnswer, CompleteRequest, ModelInfo
from calomel.prompts.next_edit import class_called, region_called
from calomel.prompts.parts import Edit, edited, split_lines
from calomel.replay.events import Changed, Closed, Focused, Opened
from calomel.report.result import Report, Table, Value, number_cell
from calomel.storage.failures import cause
from calomel.suggest.edit import Suggestion
from calomel.suggest.judging import Judged
from calomel.suggest.silence import Silence
from calomel.suggest.snapshot import Trigger
from calomel.workspace.edits import edits_of
from calomel.workspace.settings import Aggressiveness, SuggestSettings

# Offers of one chain: more than any recorded answer has hunks.
_MOST: Final = 8
# Seconds on the scenario's clock between an acceptance and the next question.
_PAUSE: Final = 0.4
_CONTEXT: Final = 8192
_KEYS: Final = ("score", "delta_chrf", "show_rate", "quiet_rate", "exact_match")


@dataclass(frozen=True, slots=True)
class RecordedOptions:
    """What to run.

    Attributes:
        suite: a folder of `*.txtar`, or one file.
        recorded: the folder of recordings.
        chain: also take one offer after another.
        aggressiveness: of the editor's settings.
    """

    suite: Path
    recorded: Path
    chain: bool = False
    aggressiveness: Aggressiveness = "balanced"


def run_recorded(options: RecordedOptions) -> Report:
    """Score every provider of the folder. Raises SuiteError."""
    return asyncio.run(_measure(options))


# Decoding.


def _between(text: str, start: str, end: str) -> str:
    """What stands between two marks, without a line end before the second one. Raises ValueError."""
    found = re.search(f"{re.escape(start)}(.*?)\\n?{re.escape(end)}", text, re.DOTALL)
    if found is None:
        raise ValueError(f"it has no {start!r} followed by {end!r}")
    return found[1]


def _mercury(prompt: str, answer: str) -> tuple[str, str]:
    found = re.match(r"```[^\n]*\n(.*?)\n?```\s*\Z", answer, re.DOTALL)
    return _between(prompt, "<|code_to_edit|>\n", "<|/code_to_edit|>"), answer if found is None else found[1]


def _zeta(prompt: str, answer: str) -> tuple[str, str]:
    start, end = "<|editable_region_start|>\n", "<|editable_region_end|>"
    return _between(prompt, start, end), _between(f"{answer}{end}", start, end)


def _zeta2(prompt: str, answer: str) -> tuple[str, str]:
    return _between(prompt, "<<<<<<< CURRENT\n", "=======\n"), answer.partition(">>>>>>> UPDATED")[0]


def _sweep(prompt: str, answer: str) -> tuple[str, str]:
    current = re.search(r"<\|file_sep\|>current/[^\n]*\n(.*?)\n?<\|file_sep\|>updated/", prompt, re.DOTALL)
    if current is None:
        raise ValueError("the prompt has no current text")
    _, _, beginning = prompt[prompt.rindex("<|file_sep|>updated/") :].partition("\n")
    return current[1], beginning + answer


_REGIONS: Final[Mapping[str, Callable[[str, str], tuple[str, str]]]] = {
    "mercury": _mercury, "zeta-2": _zeta2, "zeta": _zeta, "sweep": _sweep,
}  # fmt: skip
_CURSORS: Final = ("<|user_cursor|>", "<|user_cursor_is_here|>", "<|cursor|>")


def _bodies(path: Path) -> tuple[bytes, bytes]:
    """The first request and its answer. Raises SuiteError."""
    found: dict[str, bytes] = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row.get("interaction", 0) == 0:
                found.setdefault(row["kind"], base64.b64decode(row.get("body_b64") or ""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SuiteError(f"{path} is not a recording: {cause(error)}") from error
    return found.get("request", b""), found.get("response", b"")


def recorded_text(path: Path, document: str) -> str | None:
    """The document as the answer recorded in a file leaves it; None if it changes nothing. Raises SuiteError."""
    asked, answered = _bodies(path)
    if not answered:
        return None
    try:
        return _decoded(path.stem, document, asked, json.loads(answered))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise SuiteError(f"{path}: its answer cannot be read: {cause(error)}") from error


def _decoded(provider: str, document: str, request: bytes, answered: Any) -> str | None:
    if isinstance(answered, list):
        return _with_ranges(document, answered)
    if "choices" not in answered:
        return _with_offsets(document, answered)
    choice, asked = answered["choices"][0], json.loads(request)
    answer = choice["message"]["content"] if "message" in choice else choice["text"]
    prompt = asked["prompt"] if "prompt" in asked else asked["messages"][0]["content"]
    form = next((read for name, read in _REGIONS.items() if provider.startswith(name)), None)
    if form is None:
        return _filled(document, prompt, answer)
    region, new = form(prompt, answer)
    for cursor in _CURSORS:
        region, new = region.replace(cursor, ""), new.replace(cursor, "")
    place = _place(document, region)
    if place is None:
        return None
    start, end = place
    line_end = "\n" if document[start:end].endswith("\n") else ""
    return document[:start] + new.rstrip("\n") + line_end + document[end:]


def _filled(document: str, prompt: str, answer: str) -> str | None:
    """A hole between fill-in-the-middle tokens."""
    found = re.search(r"<\|fim_prefix\|>(.*?)<\|fim_suffix\|>(.*?)<\|fim_middle\|>", prompt, re.DOTALL)
    if found is None:
        raise ValueError("the prompt has no gap")
    place = _place(document, found[1] + found[2])
    return None if place is None else document[: place[0]] + found[1] + answer + found[2] + document[place[1] :]


def _with_ranges(document: str, edits: Sequence[Any]) -> str | None:
    """Edits with ranges of lines and characters, as in the Language Server Protocol."""
    starts = list(accumulate(map(len, split_lines(document)), initial=0))

    def at(place: Mapping[str, int]) -> int:
        return starts[place["line"]] + place["character"]

    found = sorted(Edit(at(e["range"]["start"]), at(e["range"]["end"]), str(e["text"])) for e in edits)
    return edited(document, found) if found else None


def _with_offsets(document: str, answered: Mapping[str, Any]) -> str | None:
    one = [answered] if answered.get("completion") is not None else []
    found = sorted(
        Edit(each["start_index"], each["end_index"], str(each["completion"]))
        for each in answered.get("completions") or one
    )
    return edited(document, found) if found else None


def _place(document: str, region: str) -> tuple[int, int] | None:
    """Where a region's text is in the document; line ends at its end may differ."""
    for text in (region, region.rstrip("\n")):
        at = document.find(text)
        if text and at >= 0:
            return at, at + len(text)
    return None


# Asking.


def _within(document: str, wanted: str, start: int, end: int) -> str:
    """`document[start:end]` with those changes towards `wanted` that lie within it, by whole lines."""
    old, new = split_lines(document), split_lines(wanted)
    starts = list(accumulate(map(len, old), initial=0))
    found: list[str] = []
    for tag, first, last, to_first, to_last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        low, high = starts[first], starts[last]
        if tag != "equal" and start <= low and high <= end:
            found += new[to_first:to_last]
        elif max(low, start) < min(high, end):
            found.append(document[max(low, start) : min(high, end)])
    return "".join(found)


class _Recorded:
    """A model that answers what was recorded, as far as it lies in the region that it is asked about."""

    address: str | None = None

    def __init__(self, provider: str, document: str, wanted: str | None) -> None:
        self.document = document
        self.asked = 0
        self._provider = provider
        self._wanted = wanted

    async def info(self) -> ModelInfo:
        name, kind = self._provider, class_called(self._provider) or "fim"
        region = region_called(name)
        return ModelInfo(name, "0" * 16, ("fill", "edit"), _CONTEXT, _CONTEXT // 4, None, "0", region, False, kind)

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        parts, own = request.parts, tuple[Candidate, ...]()
        if request.kind == "edit" and request.own and parts.region is not None:
            self.asked += 1
            lead = parts.prefix[-400:]
            at = self.document.find(lead + parts.region.text) + len(lead)
            text = parts.region.text
            if self._wanted is not None and at >= len(lead):
                text = _within(self.document, self._wanted, at, at + len(text))
            own = (Candidate(text),)
        drafts = tuple(Candidate(draft.text, maker=draft.maker) for draft in request.drafts)
        return CompleteAnswer((*own, *drafts), model=self._provider, judged=False)

    async def aclose(self) -> None:
        """There is nothing to close."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """The first offer, all of them, and what was decided on the way."""

    first: Reply
    chain: Reply
    asked: int
    makers: tuple[str, ...]
    decisions: tuple[Judged, ...]


async def _ask(case: Case, model: _Recorded, settings: SuggestSettings, most: int) -> _Asked:
    room = Room(model, settings)
    room.play([event for event in case.log.events if isinstance(event, Opened | Changed | Closed | Focused)])
    room.settle()
    path, text, cursor, texts, makers, reason = case.scenario.file, case.text, case.offset, [], [], None
    decisions: list[Judged] = []
    for turn in range(most):
        model.document = text
        answer, _ = await room.ask(case.name, path, cursor, Trigger.EDIT if turn else Trigger.EXPLICIT)
        decisions += room.decisions.all[len(decisions) :]
        if isinstance(answer, Silence):
            reason = str(answer.reason)
            break
        text, cursor = _taken(room, path, text, answer, turn)
        texts.append(text)
        makers.append(answer.maker)
    await room.suggester.aclose()
    ends = [Reply(found[-1] if found else None, None if found else reason) for found in (texts[:1], texts)]
    return _Asked(ends[0], ends[1], model.asked, tuple(makers), tuple(decisions))


def _taken(room: Room, path: str, text: str, answer: Suggestion, turn: int) -> tuple[str, int]:
    """The text after an offer that is accepted, and the cursor in it."""
    edits = tuple(sorted(answer.edits, key=lambda edit: edit.start))
    room.play([Changed(10_000 + turn, room.clock() + _PAUSE, path, edits, "accept")])
    room.settle()
    before = sum(len(edit.text) - (edit.end - edit.start) for edit in edits[:-1])
    return edited(text, edits), edits[-1].start + len(edits[-1].text) + before


def _loss(case: Case, wanted: str | None, found: _Asked, raw: CaseScore, ours: CaseScore) -> str:
    """Why Calomel's way is worth less than the recorded answer; empty where it is not."""
    worse = (ours.delta_chrf or 0.0) < (raw.delta_chrf or 0.0) if case.expected is not None else raw.right > ours.right
    if not worse or wanted is None:
        return "" if not worse else f"a rule proposed an edit where the model was silent: {', '.join(found.makers)}"
    if not found.asked:
        return "not asked"
    own = [each for each in found.decisions if each.maker == CANVAS]
    rules = [maker for maker in found.makers if maker != CANVAS]
    if not own:
        return "not in the region"
    held = [str(each.reason) for each in own if each.reason is not None]
    if held:
        return f"hidden: {held[0]}"
    if rules:
        return f"outranked: {rules[0]}"
    whole = any(edited(case.text, edits_of(each.edits)) == wanted for each in own)
    return "torn apart" if whole else "only in part in the region"


async def _measure(options: RecordedOptions) -> Report:
    cases, problems = read_suite(options.suite)
    chosen: dict[str, Case] = {}
    for case in cases:
        stem = case.name.partition("@")[0]
        if (options.recorded / stem).is_dir():
            chosen.setdefault(stem, case)
    providers = sorted({path.stem for path in options.recorded.glob("*/*.ndjson")})
    if not providers or not chosen:
        raise SuiteError(f"{options.recorded} has no recordings (SCENARIO/PROVIDER.ndjson) of these scenarios")
    settings = SuggestSettings(debounce_seconds=0.0, aggressiveness=options.aggressiveness)
    flat: dict[str, Value] = {"aggressiveness": options.aggressiveness, "chain": options.chain}
    rows: list[tuple[str, ...]] = []
    lost: list[tuple[str, ...]] = []
    details: dict[str, Any] = {}
    for provider in providers:
        scores: dict[str, list[CaseScore]] = {"raw": [], "first": [], "chain": []}
        for stem, case in chosen.items():
            path = options.recorded / stem / f"{provider}.ndjson"
            if not path.is_file():
                continue
            wanted = recorded_text(path, case.text)
            raw = score_case(case, Reply(wanted, None if wanted is not None else "no answer"))
            model = _Recorded(provider, case.text, wanted)
            found = await _ask(case, model, settings, _MOST if options.chain else 1)
            first, last = score_case(case, found.first), score_case(case, found.chain)
            for name, score in (("raw", raw), ("first", first), ("chain", last)):
                scores[name].append(score)
            why = _loss(case, wanted, found, raw, last)
            if why:
                cells = (number_cell(each.delta_chrf, 1) for each in (raw, first, last))
                lost.append((provider, stem, *cells, why))
        kinds = ("raw", "first", "chain") if options.chain else ("raw", "first")
        for kind in kinds:
            figures = score_suite(scores[kind])
            prefix = "" if kind == "first" else f"{kind}_"
            flat |= {f"{provider}.{prefix}{key}": figures[key] for key in _KEYS}
            rows.append((provider if kind == "raw" else "", kind, *(number_cell(figures[key], 3) for key in _KEYS)))
        details[provider] = {kind: [replace(each, proposed=()) for each in scores[kind]] for kind in kinds}
    return Report(
        bench="bench edits recorded",
        flat=flat,
        tables=(
            Table("Recorded answers", ("provider", "", "score", "deltaChrF", "show rate", "quiet rate", "exact"), rows),
            Table("What Calomel loses", ("provider", "case", "raw", "first", "chain", "why"), lost),
        ),
        notes=(
            (
                "raw: the recorded answer as it is. first: Calomel's first offer. chain: all its offers, accepted one"
                f" after another, at most {_MOST}. deltaChrF and score as in the public suite."
            ),
            *problems,
        ),
        details={
            name: {kind: [_plain(each) for each in scores] for kind, scores in found.items()}
            for name, found in details.items()
        },
    )


def _plain(score: CaseScore) -> dict[str, Any]:
    return {"name": score.name, "shown": score.shown, "right": score.right, "delta_chrf": score.delta_chrf,
            "reason": score.reason}  # fmt: skip
