"""Records of `calomel bench infill --context` to flat keys and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from calomel.bench.cells import size_name
from calomel.bench.copying import copy_name
from calomel.bench.holes import KINDS
from calomel.bench.report import Table, Value, number_cell, percent_cell, put_interval
from calomel.bench.stats import Interval, paired_difference, wilson

# A longer context counts as good when it loses at most this much to the shortest.
TOLERANCE: Final = 0.01

# An answer, whether it was right, and what it cost.
Record = dict[str, Any]


def quality(flat: dict[str, Value], records: Sequence[dict[int, Record]], sizes: Sequence[int]) -> Table:
    """Exact match by size, and what is lost to the shortest context."""
    rows = []
    first = sizes[0]
    for size in sizes:
        name = size_name(size)
        mine = [record[size] for record in records]
        share = _share(mine)
        lost = paired_difference([each["correct"] for each in mine], [record[first]["correct"] for record in records])
        tokens, seconds = _mean(mine, "context_tokens"), _mean(mine, "seconds")
        put_interval(flat, f"exact_match_{name}", share)
        put_interval(flat, f"exact_match_{name}_minus_{size_name(first)}", lost)
        flat[f"context_tokens_{name}"], flat[f"seconds_{name}"] = tokens, seconds
        points = number_cell(None if lost is None else 100 * lost.value, 1)
        rows.append(
            (name.upper(), str(len(mine)), percent_cell(share), points, number_cell(tokens, 0), number_cell(seconds))
        )
    flat["context_supported"] = supported(flat, sizes)
    return Table(
        "Exact match by size of context",
        ("context", "holes", "exact match", f"points over {size_name(first).upper()}", "tokens", "seconds"),
        tuple(rows),
    )


def supported(flat: dict[str, Value], sizes: Sequence[int]) -> int:
    """The longest size whose exact match is within a point of the shortest's, as are all sizes before it."""
    best = sizes[0]
    least = flat[f"exact_match_{size_name(best)}"]
    for size in sizes[1:]:
        value = flat[f"exact_match_{size_name(size)}"]
        if not isinstance(value, float) or not isinstance(least, float) or value < least - TOLERANCE - 1e-9:
            break
        best = size
    return best


def by_kind(flat: dict[str, Value], records: Sequence[dict[int, Record]], sizes: Sequence[int]) -> Table:
    """Exact match of each kind of hole by size."""
    rows = []
    for kind in KINDS:
        cells = [kind]
        for size in sizes:
            share = _share([record[size] for record in records if record[size]["row"] == kind])
            put_interval(flat, f"{kind}.exact_match_{size_name(size)}", share)
            cells.append(percent_cell(share))
        rows.append(tuple(cells))
    return Table("Exact match by kind of hole", ("holes", *(size_name(size).upper() for size in sizes)), tuple(rows))


def copying(flat: dict[str, Value], copies: Mapping[int, Sequence[Record]], sizes: Sequence[int]) -> Table:
    """How many names that are defined far away were filled."""
    rows = []
    for size in sizes:
        mine = copies.get(size)
        if not mine:
            continue
        name, share = copy_name(size), _share(mine)
        distance = min(int(record["distance"]) for record in mine)
        put_interval(flat, name, share)
        flat[f"{name}_distance"] = distance
        rows.append((name, size_name(size).upper(), str(len(mine)), percent_cell(share), f"{distance:,}"))
    return Table(
        "Names defined far away", ("copies", "context", "n", "filled", "tokens in between, at least"), tuple(rows)
    )


def _share(records: Sequence[Record]) -> Interval | None:
    return wilson(sum(bool(record["correct"]) for record in records), len(records))


def _mean(records: Sequence[Record], key: str) -> float | None:
    return sum(float(record[key]) for record in records) / len(records) if records else None
