"""`calomel bench edits`: next-edit scenarios with the public suite's score.

Every case is put to the model through the same workspace, context and suggestions as an editor has.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from calomel.bench.baselines import LeftToRight, repeat_last
from calomel.bench.harm import NOTE, Offered, harm_figures, harm_table, harms
from calomel.bench.held_summary import BASELINES, DRAFTS, LEFT_TO_RIGHT, NAMES, REPEAT
from calomel.bench.room import BROKEN, Room, uri_of
from calomel.bench.suite import (
    Case,
    CaseScore,
    Reply,
    SuiteError,
    SuiteScore,
    figures,
    read_suite,
    score_above,
    score_case,
    score_suite,
)
from calomel.replay.events import Changed, Closed, Focused, Opened
from calomel.report.result import Report, Table, Value, describe_run, number_cell
from calomel.report.stories import Change
from calomel.suggest.completer import Completer, Kind, ModelInfo
from calomel.suggest.drafts.propose import drafts
from calomel.suggest.silence import Silence
from calomel.suggest.suggestion import Suggestion, apply
from calomel.suggest.trigger import Trigger
from calomel.workspace.settings import Aggressiveness, SuggestSettings

_PUBLISHED: Final = "peer-baseline-*.json"
_DEFINITIONS: Final = (
    (
        "score = deltaChrF x gate / 100; gate is the harmonic mean of show rate and quiet rate. 95 % intervals come"
        " from resampling the cases."
    ),
    (
        "Some expected texts end in an empty line that the document does not have. The published figures count it; so"
        " do `score` and deltaChrF here. Trimmed: without line feeds at the ends. Exact match is trimmed."
    ),
    NOTE,
)
_BASELINES: Final = (
    "The repeated edit and the best draft are shown wherever there is one. The model left to right is judged by the"
    " likelihood ratio of edit and keep and by the same gate. `score_over_...`: cases resampled for both alike."
)


@dataclass(frozen=True, slots=True)
class EditsOptions:
    """What to run.

    Attributes:
        suite: a folder of `*.txtar`, or one file.
        kind: `edit` asks for the next edit; `fill` asks for text at the place that a scenario names for it.
        model: checkpoint folder; None for the shipped one.
        device, threads: of the engine.
        baselines: score the three baselines, too.
        aggressiveness: of the editor's settings.
        seed: of the bootstrap.
        json, results: where to write.
    """

    suite: Path
    kind: Kind = "edit"
    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    baselines: bool = False
    aggressiveness: Aggressiveness = "balanced"
    seed: int = 0
    json: Path | None = None
    results: Path | None = None


def run_edits(options: EditsOptions) -> Report:
    """Score the suite. Raises SuiteError, and what `calomel.suggest.in_process.open_completer` raises."""
    cases, problems = read_suite(options.suite)
    report = asyncio.run(_measure(options, cases, problems))
    report.write(json_path=options.json, results=options.results)
    return report


async def _measure(options: EditsOptions, cases: tuple[Case, ...], problems: tuple[str, ...]) -> Report:
    from calomel.suggest.filler import Filler
    from calomel.suggest.in_process import open_completer

    completer = open_completer(options.model, options.device, options.threads)
    settings = SuggestSettings(debounce_seconds=0.0, aggressiveness=options.aggressiveness)
    others: dict[str, list[CaseScore]] = {}
    try:
        info = await completer.info()
        rows = await ask_all(cases, completer, options.kind, settings)
        if options.baselines:
            others = ask_plain(cases, completer)
            if isinstance(completer.filler, Filler):
                rival = LeftToRight(completer, completer.filler)
                others[LEFT_TO_RIGHT] = await ask_all(cases, rival, options.kind, settings)
    finally:
        await completer.aclose()
    return _report(options, info, rows, others, problems)


async def ask_all(
    cases: Sequence[Case], completer: Completer, kind: Kind, settings: SuggestSettings | None = None
) -> list[CaseScore]:
    """Put every case to a model, one after another."""
    return [score_case(case, await _ask(case, completer, kind, settings)) for case in cases]


def ask_plain(cases: Sequence[Case], completer: Completer) -> dict[str, list[CaseScore]]:
    """What the baselines that need no model say to every case; `completer` is not asked."""
    found: dict[str, list[CaseScore]] = {REPEAT: [], DRAFTS: []}
    for case in cases:
        path, hunks = case.scenario.file, _room(case, completer, None).hunks(case.scenario.file)
        edit = repeat_last(case.text, hunks, case.offset)
        repeated = Reply(None, "nothing to repeat") if edit is None else Reply(apply(case.text, [edit]))
        found[REPEAT].append(score_case(case, repeated))
        best = next(iter(drafts(case.text, hunks, case.offset, path)), None)
        drafted = Reply(None, "no draft") if best is None else Reply(best.apply(case.text))
        found[DRAFTS].append(score_case(case, drafted))
    return found


async def _ask(case: Case, completer: Completer, kind: Kind, settings: SuggestSettings | None) -> Reply:
    """What the model has to say to a case.

    For a next edit it is asked as by a key, since the scenarios say so and since not all have an edit to begin with;
    for text at the cursor as after a keystroke, since by a key it would have to say something.

    Raises:
        SuiteError: the model was not there, or broke; that is no silence of its own.
    """
    room = _room(case, completer, settings)
    uri = uri_of(case.scenario.file)
    started = time.perf_counter()
    if kind == "fill":
        answer = await room.suggester.inline(uri, case.fill_offset, Trigger.EDIT)
    else:
        answer = await room.suggester.next_edit(uri, None, case.offset, trigger=Trigger.EXPLICIT)
    latency_ms = (time.perf_counter() - started) * 1000
    await room.suggester.aclose()
    if isinstance(answer, Silence):
        if answer.reason in BROKEN:
            raise SuiteError(f"{case.name}: the model did not answer: {answer.reason}. {answer.message}")
        return Reply(None, str(answer.reason), latency_ms)
    return Reply(apply(case.text, answer.edits), None, latency_ms, harms(_offered(case, answer)))


def _room(case: Case, completer: Completer, settings: SuggestSettings | None) -> Room:
    """An editor in which what happened before the question has happened."""
    room = Room(completer, settings)
    room.play([event for event in case.log.events if isinstance(event, Opened | Changed | Closed | Focused)])
    # What a scenario calls its history is finished.
    room.settle()
    document = room.document(case.scenario.file)
    if document is None or document.text != case.text:
        raise ValueError(f"{case.name}: its history does not lead to its text")
    return room


def _offered(case: Case, answer: Suggestion) -> Offered:
    """The answer with what happened before it."""
    path, before, changes = case.scenario.file, "", list[Change]()
    for event in case.log.events:
        if isinstance(event, Opened) and event.document == path:
            before, changes = event.text, []
        elif isinstance(event, Changed) and event.document == path:
            changes += [Change(edit.start, edit.end, edit.text) for edit in reversed(event.edits)]
    return Offered(case.text, answer.edits, case.offset, path, before, changes)


def _notes(kind: Kind, info: ModelInfo, rows: Sequence[CaseScore]) -> list[str]:
    notes = []
    if kind not in info.kinds:
        notes.append(
            f"{info.id} is not trained for kind `{kind}`, only for {', '.join(info.kinds)}: it stays silent everywhere,"
            " so that its quiet rate is no merit."
        )
    if kind == "fill":
        notes.append(
            "Asked for text at the cursor, where a scenario names a place for that: filling makes no edits elsewhere."
        )
    silences = sorted({row.reason for row in rows if row.reason})
    if silences:
        counts = ", ".join(f"{reason} {sum(row.reason == reason for row in rows)}" for reason in silences)
        notes.append(f"Silences: {counts}.")
    return notes


def _report(
    options: EditsOptions,
    info: ModelInfo,
    rows: Sequence[CaseScore],
    others: Mapping[str, Sequence[CaseScore]],
    problems: Sequence[str],
) -> Report:
    whole = score_suite(rows)
    published = _published(options.suite if options.suite.is_dir() else options.suite.parent)
    offers = [row.harms for row in rows if row.harms is not None]
    flat: dict[str, Value] = {
        "model": info.id,
        "kind": options.kind,
        "aggressiveness": options.aggressiveness,
        **figures(rows, whole, options.seed),
        **harm_figures(offers),
    }
    table = [_suite_row(f"**{info.id}, {options.kind}**", whole, flat)]
    for other in [each for each in BASELINES if each in others]:
        theirs = others[other]
        their_flat = figures(theirs, score_suite(theirs), options.seed)
        flat |= {
            f"{other}_{key}": value for key, value in their_flat.items() if not key.endswith(("cases", "positions"))
        }
        flat |= score_above(rows, theirs, other, options.seed)
        table.append(_suite_row(NAMES[other], score_suite(theirs), their_flat))
    notes = [*_DEFINITIONS, *((_BASELINES,) if others else ())]
    if published:
        notes.append(f"Published rows are of the whole suite of {published[0]} scenarios, not of these.")
    details: dict[str, Any] = {
        "scenarios": [row.to_json() for row in rows],
        "right": [row.name for row in rows if row.right],
        "published": published[1] if published else {},
    }
    if others:
        details["baselines"] = {each: [row.to_json() for row in theirs] for each, theirs in others.items()}
    return Report(
        bench=f"bench edits {options.kind}",
        flat=flat,
        tables=(_whole_table(table, published), harm_table(offers), _case_table(rows)),
        notes=(*notes, *_notes(options.kind, info, rows), *problems),
        provenance=describe_run(),
        details=details,
    )


def _suite_row(name: str, whole: SuiteScore, flat: Mapping[str, Value]) -> tuple[str, ...]:
    bounds = flat.get("score_low"), flat.get("score_high")
    interval = "" if None in bounds else f" [{bounds[0]:.2f}, {bounds[1]:.2f}]"
    return (
        f"{name}, {whole.edit_cases} edits and {whole.quiet_positions} quiet positions",
        number_cell(whole.score) + interval,
        number_cell(whole.delta_chrf, 1),
        number_cell(whole.delta_chrf_trimmed, 1),
        *(_percent(share) for share in (whole.show_rate, whole.quiet_rate, whole.exact_match)),
    )


def _whole_table(mine: Sequence[tuple[str, ...]], published: tuple[str, dict[str, Any]] | None) -> Table:
    count, peers = published or ("", {})
    rows = [
        (
            f"{peer}, published, {count} scenarios",
            number_cell(row["score"]),
            number_cell(row["deltaChrF"], 1),
            "-",
            _percent(row["showRate"]),
            _percent(row["quietRate"]),
            "-",
        )
        for peer, row in sorted(peers.items(), key=lambda item: -item[1]["score"])
    ]
    columns = ("", "score", "deltaChrF", "trimmed", "show rate", "quiet rate", "exact match")
    return Table("Next-edit scenarios", columns, (*mine, *rows))


def _case_table(rows: Sequence[CaseScore]) -> Table:
    columns = ("case", "expects", "answer", "right", "deltaChrF", "trimmed", "grams", "line F1", "ms")
    cells = tuple(
        (
            row.name,
            row.expects,
            "edit" if row.shown else row.reason or "silence",
            "yes" if row.right else "no",
            *(number_cell(each, 1) for each in (row.delta_chrf, row.delta_chrf_trimmed, row.delta_chrf_grams)),
            number_cell(row.line_f1),
            number_cell(row.latency_ms, 0),
        )
        for row in rows
    )
    return Table("Case by case", columns, cells)


def _published(folder: Path) -> tuple[str, dict[str, Any]] | None:
    """The peers' published rows that lie beside a suite, and of how many scenarios they are. Raises SuiteError."""
    file = next(iter(sorted(folder.glob(_PUBLISHED))), None)
    if file is None:
        return None
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
        keys = ("score", "deltaChrF", "showRate", "quietRate")
        good = all(math.isfinite(row[key]) for row in rows.values() for key in keys)
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise SuiteError(f"{file} has no published rows: {error!r}") from error
    if not good:
        raise SuiteError(f"{file} has a figure that is not finite")
    return file.stem.rsplit("-", 1)[-1], rows


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
