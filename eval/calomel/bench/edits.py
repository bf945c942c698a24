"""`calomel bench edits`: next-edit scenarios with the public suite's score, for a model or for recorded answers."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from calomel.bench.asked import ask, drafted, repeated
from calomel.bench.cases import Case, SuiteError, read_suite
from calomel.bench.held_summary import NAMES
from calomel.bench.machine import describe_run
from calomel.bench.moment_row import BASELINES, DRAFTS, LEFT_TO_RIGHT, REPEAT
from calomel.bench.recorded_peer import read_exchanges, replies_to
from calomel.bench.report import Report, Table, Value, number_cell
from calomel.bench.suite_figures import figures, score_above
from calomel.bench.suite_score import CaseScore, Reply, SuiteScore, score_case, score_suite
from calomel.suggest.completer import Completer, Kind, ModelInfo
from calomel.workspace.preferences import Aggressiveness, SuggestSettings

_PUBLISHED: Final = "peer-baseline-*.json"
_SCORE: Final = (
    "score = deltaChrF x gate / 100; gate is the harmonic mean of show rate and quiet rate. 95 % intervals come from"
    " resampling the cases."
)
_TRIMMED: Final = (
    "Some expected texts end in an empty line that the document does not have. The published figures count it; so do"
    " `score` and deltaChrF here. Trimmed: without line feeds at the ends. Exact match is trimmed."
)
_BASELINES: Final = (
    "The repeated edit and the best draft are shown wherever there is one. The model left to right is judged by the"
    " likelihood ratio of edit and keep and by the same gate. `score_over_...`: cases resampled for both alike."
)
_DEFINITIONS: Final = (_SCORE, _TRIMMED)


@dataclass(frozen=True, slots=True)
class EditsOptions:
    """What to run.

    Attributes:
        suite: a folder of `*.txtar`, or one file.
        peer: whose recorded answers are scored instead of a model's.
        kind: `edit` asks for the next edit; `fill` asks for text at the place that a scenario names for it.
        model: checkpoint folder; None for the shipped one.
        device, threads: of the engine.
        baselines: score the three baselines, too.
        aggressiveness: of the editor's settings.
        seed: of the bootstrap.
        json, results: where to write.
    """

    suite: Path
    peer: Literal["mercury"] | None = None
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
    if options.peer is not None:
        report = _peer_report(options, cases, problems)
    else:
        report = asyncio.run(_model_report(options, cases, problems))
    report.write(json_path=options.json, results=options.results)
    return report


async def ask_all(
    cases: Sequence[Case], completer: Completer, kind: Kind, settings: SuggestSettings | None = None
) -> list[CaseScore]:
    """Put every case to a model, one after another."""
    return [score_case(case, [await ask(case, completer, kind=kind, settings=settings)]) for case in cases]


def ask_plain(cases: Sequence[Case], completer: Completer) -> dict[str, list[CaseScore]]:
    """What the baselines that need no model say to every case."""
    return {
        REPEAT: [score_case(case, [repeated(case, completer)]) for case in cases],
        DRAFTS: [score_case(case, [drafted(case, completer)]) for case in cases],
    }


def recorded_replies(cases: Sequence[Case], folder: Path) -> list[tuple[Case, tuple[Reply, ...]]]:
    """What was recorded for each case, nothing where a position has no recording. Raises SuiteError."""
    if not folder.is_dir():
        raise SuiteError(f"{folder} is not there: it should hold the recorded answers, one *.ndjson for each scenario")
    found = []
    for case in cases:
        file = folder / f"{case.file.stem}.ndjson"
        found.append((case, replies_to(case, read_exchanges(file)) if file.exists() else ()))
    return found


async def _model_report(options: EditsOptions, cases: tuple[Case, ...], problems: tuple[str, ...]) -> Report:
    from calomel.bench.left_to_right import LeftToRight
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
    right = [row.name for row in rows if row.right]
    notes = [*_notes(options.kind, info, rows), *problems]
    origin: dict[str, Value] = {"model": info.id, "kind": options.kind, "aggressiveness": options.aggressiveness}
    return _report(options, f"{info.id}, {options.kind}", rows, notes, origin, right, others)


def _peer_report(options: EditsOptions, cases: tuple[Case, ...], problems: tuple[str, ...]) -> Report:
    recorded = recorded_replies(cases, _folder(options.suite) / str(options.peer))
    rows = [score_case(case, replies) for case, replies in recorded if replies]
    missing = [case.name for case, replies in recorded if not replies]
    if not rows:
        raise SuiteError(f"no case of {options.suite} has a recorded answer of {options.peer}")
    notes = [
        "Answers as recorded, through the same scorer. Each scenario was recorded at one position.",
        f"Positions without a recording, which do not count: {len(missing)}"
        + (f" ({', '.join(missing)})." if missing else "."),
        *problems,
    ]
    return _report(
        options,
        f"{options.peer}, recorded",
        rows,
        notes,
        {"model": f"{options.peer} (recorded)", "kind": "edit", "positions_without_recording": len(missing)},
        [row.name for row in rows if row.right],
    )


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
    name: str,
    rows: Sequence[CaseScore],
    notes: Sequence[str],
    origin: dict[str, Value],
    right: Sequence[str],
    others: Mapping[str, Sequence[CaseScore]] | None = None,
) -> Report:
    whole = score_suite(rows)
    published = _published(_folder(options.suite))
    flat: dict[str, Value] = {**origin, **figures(rows, whole, options.seed)}
    mine = [_suite_row(f"**{name}**", whole, flat)]
    for other in [each for each in BASELINES if others and each in others]:
        theirs = (others or {})[other]
        their_whole = score_suite(theirs)
        their_flat = figures(theirs, their_whole, options.seed)
        flat |= {
            f"{other}_{key}": value for key, value in their_flat.items() if not key.endswith(("cases", "positions"))
        }
        flat |= score_above(rows, theirs, other, options.seed)
        mine.append(_suite_row(NAMES[other], their_whole, their_flat))
    return Report(
        bench=f"bench edits {options.peer or options.kind}",
        flat=flat,
        tables=(_whole_table(mine, published), _case_table(rows)),
        notes=(
            *_DEFINITIONS,
            *((_BASELINES,) if others else ()),
            *(
                [f"Published rows are of the whole suite of {published[0]} scenarios, not of these."]
                if published
                else []
            ),
            *notes,
        ),
        provenance=describe_run(),
        details={
            "scenarios": [row.to_json() for row in rows],
            "right": list(right),
            **(
                {"baselines": {each: [row.to_json() for row in theirs] for each, theirs in others.items()}}
                if others
                else {}
            ),
            "published": published[1] if published else {},
        },
    )


def _suite_row(name: str, whole: SuiteScore, flat: Mapping[str, Value]) -> tuple[str, ...]:
    bounds = flat.get("score_low"), flat.get("score_high")
    interval = "" if None in bounds else f" [{bounds[0]:.2f}, {bounds[1]:.2f}]"
    return (
        f"{name}, {whole.edit_cases} edits and {whole.quiet_positions} quiet positions",
        number_cell(whole.score) + interval,
        number_cell(whole.delta_chrf, 1),
        number_cell(whole.delta_chrf_trimmed, 1),
        _percent(whole.show_rate),
        _percent(whole.quiet_rate),
        _percent(whole.exact_match),
    )


def _whole_table(mine: Sequence[tuple[str, ...]], published: tuple[str, dict[str, Any]] | None) -> Table:
    peers = sorted((published[1] if published else {}).items(), key=lambda item: -item[1]["score"])
    rows = [
        (
            f"{peer}, published, {published[0] if published else ''} scenarios",
            number_cell(row["score"]),
            number_cell(row["deltaChrF"], 1),
            "-",
            _percent(row["showRate"]),
            _percent(row["quietRate"]),
            "-",
        )
        for peer, row in peers
    ]
    columns = ("", "score", "deltaChrF", "trimmed", "show rate", "quiet rate", "exact match")
    return Table("Next-edit scenarios", columns, (*mine, *rows))


def _case_table(rows: Sequence[CaseScore]) -> Table:
    columns = ("case", "expects", "answer", "right", "deltaChrF", "trimmed", "grams", "line F1", "ms")
    return Table(
        "Case by case",
        columns,
        tuple(
            (
                row.name,
                row.expects,
                "edit" if row.shown else row.reason or "silence",
                "yes" if row.right else "no",
                number_cell(row.delta_chrf, 1),
                number_cell(row.delta_chrf_trimmed, 1),
                number_cell(row.delta_chrf_grams, 1),
                number_cell(row.line_f1),
                number_cell(row.latency_ms, 0),
            )
            for row in rows
        ),
    )


def _published(folder: Path) -> tuple[str, dict[str, Any]] | None:
    """The peers' published rows that lie beside a suite, and of how many scenarios they are. Raises SuiteError."""
    file = next(iter(sorted(folder.glob(_PUBLISHED))), None)
    if file is None:
        return None
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
        good = all(
            math.isfinite(row[key]) for row in rows.values() for key in ("score", "deltaChrF", "showRate", "quietRate")
        )
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise SuiteError(f"{file} has no published rows: {error!r}") from error
    if not good:
        raise SuiteError(f"{file} has a figure that is not finite")
    return file.stem.rsplit("-", 1)[-1], rows


def _folder(suite: Path) -> Path:
    return suite if suite.is_dir() else suite.parent


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
