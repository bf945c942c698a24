"""The order in which the speed bench asks, and the asking: resumable, bounded in time, contenders taking turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from calomel.bench.answer import Contender
from calomel.bench.cells import Cell, as_run, before_keystroke
from calomel.bench.holes import Hole
from calomel.bench.journal import Journal
from calomel.bench.load import LoadWatch
from calomel.bench.progress import Progress
from calomel.bench.timings import Timing

Ask = Callable[[Hole, Contender, int], Timing]


def plan_rounds(cells: Sequence[Cell], cases: Callable[[Cell], int], *, last: Callable[[Cell], bool]) -> list[Cell]:
    """Every cell as often as it has cases, in rounds over the cells; those that `last` names come behind all others."""
    most = max((cases(cell) for cell in cells), default=0)
    rounds = [cell for turn in range(most) for cell in cells if turn < cases(cell)]
    return sorted(rounds, key=last)


def measure_rounds(
    plan: Sequence[Cell],
    holes: Mapping[str, Iterator[Hole]],
    contenders: Sequence[Contender],
    ask: Ask,
    journal: Journal,
    progress: Progress,
    load: LoadWatch,
    seconds: float | None,
) -> list[dict[str, Any]]:
    """One record a case; a case that would not fit into `seconds`, by what was seen so far, is left out."""
    started = time.monotonic()
    progress.phase("cases", len(plan))
    took: dict[str, float] = {}
    per_token = 0.0
    records: list[dict[str, Any]] = []
    for turn, cell in enumerate(plan):
        hole = next(holes[cell.name])
        record = journal.get(hole.key)
        if record is None:
            # Attention makes a token of a longer context dearer, never cheaper: for a new cell this is the least.
            expected = took.get(cell.name, per_token * cell.context)
            if seconds is not None and time.monotonic() - started + expected > seconds:
                continue
            began = time.monotonic()
            record = _case(hole, cell, turn, contenders, ask)
            record["others"] = load.others()
            took[cell.name] = time.monotonic() - began
            per_token = took[cell.name] / cell.context
            journal.put(hole.key, record)
        records.append(record)
        progress.step(cell.name)
    return records


def _case(hole: Hole, cell: Cell, turn: int, contenders: Sequence[Contender], ask: Ask) -> dict[str, Any]:
    """Cold and warm for every contender, each under a path of its own and so with a cache of its own."""
    shift = turn % len(contenders)
    record: dict[str, Any] = {"cell": cell.name}
    for contender in (*contenders[shift:], *contenders[:shift]):
        run = f"{hole.key}-{contender.name}"
        cold = ask(before_keystroke(hole, run), contender, cell.context)
        warm = ask(as_run(hole, run), contender, cell.context)
        record[contender.name] = {"cold": asdict(cold), "warm": asdict(warm)}
    return record
