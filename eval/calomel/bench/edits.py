"""`calomel bench edits`: next-edit scenarios with the public suite's score.

Every case goes through the same workspace, context and suggestions as an editor's requests.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from calomel.bench.harm import NOTE, Offered, harm_figures, harm_table, harms
from calomel.bench.held_summary import BASELINES, DRAFTS, LOSSES, NAMES, REPEAT, loss
from calomel.bench.room import Room, repeat_last, silences
from calomel.bench.suite import Case, CaseScore, Reply, SuiteError, figures, read_suite, score_above, score_case
from calomel.infer.completer import Completer, ModelInfo
from calomel.prompts.parts import Edit, edited
from calomel.replay.events import Changed, Closed, Focused, Opened
from calomel.report.result import Report, Table, Value, flat_cell, number_cell
from calomel.server.upstream import Upstream, open_either
from calomel.storage.failures import cause
from calomel.suggest.drafts.propose import drafts
from calomel.suggest.edit import Suggestion
from calomel.suggest.silence import Silence
from calomel.suggest.snapshot import Trigger
from calomel.workspace.edits import edits_of
from calomel.workspace.settings import Aggressiveness, SuggestSettings

_PUBLISHED: Final = "peer-baseline-*.json"
_DEFINITIONS: Final = (
    (
        "score = deltaChrF x gate / 100; gate is the harmonic mean of show rate and quiet rate. 95 % intervals come"
        " from resampling the cases."
    ),
    (
        "Some expected texts end in an empty line that the document lacks. The published figures count it, and so do"
        " `score` and deltaChrF here. Trimmed: without line feeds at the ends, as in exact match."
    ),
    NOTE,
)
_BASELINES: Final = (
    "The baselines show the repeated edit, or the best rule's text, wherever there is one. `score_over_...`: the same"
    " cases resampled for both."
)


@dataclass(frozen=True, slots=True)
class EditsOptions:
    """What to run.

    Attributes:
        suite: a folder of `*.txtar`, or one file.
        model: checkpoint folder; None for the shipped one.
        device, threads: of the engine.
        baselines: also score the two baselines.
        aggressiveness: of the editor's settings.
        seed: of the bootstrap.
    """

    suite: Path
    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    upstream: Upstream | None = None
    baselines: bool = False
    aggressiveness: Aggressiveness = "balanced"
    seed: int = 0


def run_edits(options: EditsOptions) -> Report:
    """Score the suite. Raises SuiteError, and what `calomel.server.upstream.open_either` raises."""
    cases, problems = read_suite(options.suite)
    return asyncio.run(_measure(options, cases, problems))


async def _measure(options: EditsOptions, cases: tuple[Case, ...], problems: tuple[str, ...]) -> Report:
    settings = SuggestSettings(debounce_seconds=0.0, aggressiveness=options.aggressiveness)
    async with aclosing(open_either(options.model, options.device, options.threads, options.upstream)) as completer:
        info = await completer.info()
        rows = await ask_all(cases, completer, settings)
        others = ask_plain(cases, completer) if options.baselines else {}
    return _report(options, info, rows, others, problems)


async def ask_all(
    cases: Sequence[Case], completer: Completer, settings: SuggestSettings | None = None
) -> list[CaseScore]:
    """Ask a model about every case, one after another."""
    return [score_case(case, await _ask(case, completer, settings)) for case in cases]


def ask_plain(cases: Sequence[Case], completer: Completer) -> dict[str, list[CaseScore]]:
    """The baselines' answers to every case; `completer` is not asked."""
    found: dict[str, list[CaseScore]] = {REPEAT: [], DRAFTS: []}
    for case in cases:
        path, hunks = case.scenario.file, _room(case, completer, None).hunks(case.scenario.file)
        edit = repeat_last(case.text, hunks, case.offset)
        repeated = Reply(None, "nothing to repeat") if edit is None else Reply(edited(case.text, [edit]))
        found[REPEAT].append(score_case(case, repeated))
        best = next(iter(drafts(case.text, hunks, case.offset, path)), None)
        drafted = Reply(None, "no draft") if best is None else Reply(best.apply(case.text))
        found[DRAFTS].append(score_case(case, drafted))
    return found


async def _ask(case: Case, completer: Completer, settings: SuggestSettings | None) -> Reply:
    """The model's answer to a case.

    The trigger is explicit, as the scenarios say and since not all of them begin with an edit. Raises SuiteError.
    """
    room = _room(case, completer, settings)
    answer, latency_ms = await room.ask(case.name, case.scenario.file, case.offset, Trigger.EXPLICIT)
    await room.suggester.aclose()
    proposed = tuple(edited(case.text, edits_of(each.edits)) for each in room.decisions.all)
    if isinstance(answer, Silence):
        return Reply(None, str(answer.reason), latency_ms, proposed=proposed)
    return Reply(edited(case.text, answer.edits), None, latency_ms, harms(_offered(case, answer)), proposed)


def _room(case: Case, completer: Completer, settings: SuggestSettings | None) -> Room:
    """An editor in which everything before the question has happened."""
    room = Room(completer, settings)
    room.play([event for event in case.log.events if isinstance(event, Opened | Changed | Closed | Focused)])
    # The edits in a scenario's history are finished.
    room.settle()
    if room.document(case.scenario.file).text != case.text:
        raise ValueError(f"{case.name}: its history does not produce its text")
    return room


def _offered(case: Case, answer: Suggestion) -> Offered:
    """The answer, with the changes before it."""
    path, before, changes = case.scenario.file, "", list[Edit]()
    for event in case.log.events:
        if isinstance(event, Opened) and event.document == path:
            before, changes = event.text, []
        elif isinstance(event, Changed) and event.document == path:
            changes += reversed(event.edits)
    return Offered(case.text, answer.edits, case.offset, path, before, changes)


def _report(
    options: EditsOptions,
    info: ModelInfo,
    rows: Sequence[CaseScore],
    others: Mapping[str, Sequence[CaseScore]],
    problems: Sequence[str],
) -> Report:
    published = _published(options.suite if options.suite.is_dir() else options.suite.parent)
    offers = [row.harms for row in rows if row.harms is not None]
    mine = figures(rows, options.seed)
    flat: dict[str, Value] = {
        "model": info.id, "aggressiveness": options.aggressiveness, **mine, **harm_figures(offers),
    }  # fmt: skip
    table = [_suite_row(f"**{info.id}**", mine)]
    for other in [each for each in BASELINES if each in others]:
        theirs = figures(others[other], options.seed)
        flat |= {f"{other}_{key}": value for key, value in theirs.items() if not key.endswith(("cases", "positions"))}
        flat |= score_above(rows, others[other], other, options.seed)
        table.append(_suite_row(NAMES[other], theirs))
    notes = [*_DEFINITIONS, *((_BASELINES,) if others else ())]
    if published:
        notes.append(f"Published rows cover the whole suite of {published[0]} scenarios, not only these.")
    if "edit" not in info.kinds:
        notes.append(
            f"{info.id} is not trained for edits, only for {', '.join(info.kinds)}: it is always silent, so"
            " ignore its quiet rate."
        )
    return Report(
        bench="bench edits",
        flat=flat,
        tables=(_whole_table(table, published), _loss_table(rows), harm_table(offers), _case_table(rows)),
        notes=(*notes, *silences(row.reason for row in rows), *problems),
        details={
            "scenarios": [asdict(row) for row in rows],
            "right": [row.name for row in rows if row.right],
            "published": published[1] if published else {},
            **({"baselines": {each: [asdict(row) for row in them] for each, them in others.items()}} if others else {}),
        },
    )


def _suite_row(name: str, flat: Mapping[str, Value]) -> tuple[str, ...]:
    return (
        f"{name}, {flat['edit_cases']} edits and {flat['quiet_positions']} quiet positions",
        flat_cell(flat, "score"),
        *(_number(flat[key], ".1f") for key in ("delta_chrf", "delta_chrf_trimmed")),
        *(_number(flat[key], ".0%") for key in ("show_rate", "quiet_rate", "exact_match")),
    )


def _whole_table(mine: Sequence[tuple[str, ...]], published: tuple[str, dict[str, Any]] | None) -> Table:
    count, peers = published or ("", {})
    rows = [
        (
            f"{peer}, published, {count} scenarios",
            number_cell(row["score"]),
            number_cell(row["deltaChrF"], 1),
            "-",
            _number(row["showRate"], ".0%"),
            _number(row["quietRate"], ".0%"),
            "-",
        )
        for peer, row in sorted(peers.items(), key=lambda item: -item[1]["score"])
    ]
    columns = ("", "score", "deltaChrF", "trimmed", "show rate", "quiet rate", "exact match")
    return Table("Next-edit scenarios", columns, (*mine, *rows))


def _loss_table(rows: Sequence[CaseScore]) -> Table:
    lost = [loss(row.proposed, shown=row.shown, right=row.right) for row in rows if row.expects == "edit"]
    cells = [("all", *(str(lost.count(name)) for name in LOSSES))]
    return Table("Where edits are lost", ("", *LOSSES.values()), cells)


def _case_table(rows: Sequence[CaseScore]) -> Table:
    columns = ("case", "expects", "answer", "right", "deltaChrF", "trimmed", "ms")
    cells = [
        (
            row.name,
            row.expects,
            "edit" if row.shown else row.reason or "silence",
            "yes" if row.right else "no",
            *(number_cell(each, 1) for each in (row.delta_chrf, row.delta_chrf_trimmed)),
            number_cell(row.latency_ms, 0),
        )
        for row in rows
    ]
    return Table("Case by case", columns, cells)


def _published(folder: Path) -> tuple[str, dict[str, Any]] | None:
    """The peers' published rows stored beside a suite, and how many scenarios they cover. Raises SuiteError."""
    file = next(iter(sorted(folder.glob(_PUBLISHED))), None)
    if file is None:
        return None
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
        keys = ("score", "deltaChrF", "showRate", "quietRate")
        if not all(math.isfinite(row[key]) for row in rows.values() for key in keys):
            raise SuiteError(f"{file} has a figure that is not finite")
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise SuiteError(f"{file} has no published rows: {cause(error)}") from error
    return file.stem.rsplit("-", 1)[-1], rows


def _number(value: Value, form: str) -> str:
    return f"{value:{form}}" if isinstance(value, int | float) else "-"
