"""Keystrokes to flat keys and tables: a line for each size of context."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from calomel.bench.cells import size_name
from calomel.bench.curve.asked import Stroke, Strokes
from calomel.bench.curve.typist import KINDS, TYPED
from calomel.bench.report import Table, Value, number_cell
from calomel.bench.stats import percentile

# More than this a keystroke must never compute beside its hole.
MOST_COMPUTED = 64
# Parts of a keystroke's time that have a column of their own.
_PARTS: Mapping[str, Callable[[Stroke], float]] = {
    "context": lambda stroke: stroke.context,
    "render": lambda stroke: stroke.render,
    "host": lambda stroke: stroke.host,
    "prefill": lambda stroke: stroke.prefill,
    "denoise": lambda stroke: stroke.denoise,
    "forward": lambda stroke: stroke.forward,
}


def flat_figures(strokes: Strokes) -> dict[str, Value]:
    """`2k.wall_p50_ms` and so on, then how much the longest context costs of what the shortest does."""
    flat: dict[str, Value] = {}
    for size, all_kinds in strokes.items():
        name, typed = size_name(size), _typed(all_kinds)
        walls = [stroke.wall for stroke in typed]
        flat |= {
            f"{name}.n": len(typed),
            f"{name}.prompt_tokens": median(stroke.prompt_tokens for stroke in typed),
            f"{name}.computed_p50": median(stroke.computed for stroke in typed),
            f"{name}.computed_max": max(stroke.computed for stroke in typed),
            f"{name}.computed_share_within": sum(s.computed <= MOST_COMPUTED for s in typed) / len(typed),
            f"{name}.rows_p50": median(stroke.rows for stroke in typed),
            f"{name}.forwards_p50": median(stroke.forwards for stroke in typed),
            f"{name}.wall_p50_ms": median(walls),
            f"{name}.wall_p95_ms": percentile(walls, 95),
            f"{name}.cpu_p50_ms": median(stroke.cpu for stroke in typed),
        }
        flat |= {f"{name}.{part}_p50_ms": median(map(of, typed)) for part, of in _PARTS.items()}
        for kind in KINDS:
            mine = [stroke for stroke in all_kinds if stroke.kind == kind]
            if mine:
                key = f"{name}.{kind.replace(' ', '_')}"
                flat[f"{key}_computed_max"] = max(stroke.computed for stroke in mine)
                flat[f"{key}_p50_ms"] = median(stroke.wall for stroke in mine)
    first, last = min(strokes), max(strokes)
    small, large = _typed(strokes[first]), _typed(strokes[last])
    flat["growth_from"], flat["growth_to"] = first, last
    flat["growth_wall"] = _growth(small, large, lambda stroke: stroke.wall)
    flat["growth_cpu"] = _growth(small, large, lambda stroke: stroke.cpu)
    flat["growth_without_forward"] = _growth(small, large, lambda stroke: stroke.wall - stroke.forward)
    flat["growth_forward"] = _growth(small, large, lambda stroke: stroke.forward)
    flat["growth_forward_share"] = _share_of_growth(small, large)
    flat["computed_max"] = max(stroke.computed for each in strokes.values() for stroke in _typed(each))
    return flat


def tables(strokes: Strokes) -> tuple[Table, ...]:
    """The curve, and what other moves than letters cost."""
    columns = ("context", "tokens", "computed p50 / max", "rows", "p50 / p95 ms", "processor ms", *_PARTS)
    rows = []
    for size, all_kinds in strokes.items():
        typed = _typed(all_kinds)
        walls = [stroke.wall for stroke in typed]
        rows.append(
            (
                size_name(size),
                f"{median(stroke.prompt_tokens for stroke in typed):.0f}",
                f"{median(stroke.computed for stroke in typed):.0f} / {max(stroke.computed for stroke in typed)}",
                f"{median(stroke.rows for stroke in typed):.0f}",
                f"{number_cell(median(walls), 1)} / {number_cell(percentile(walls, 95), 1)}",
                number_cell(median(stroke.cpu for stroke in typed), 1),
                *(number_cell(median(map(of, typed)), 1) for of in _PARTS.values()),
            )
        )
    others = [
        (
            size_name(size),
            *(_moves([stroke for stroke in all_kinds if stroke.kind == kind]) for kind in KINDS),
        )
        for size, all_kinds in strokes.items()
    ]
    return (
        Table("A keystroke by size of context", columns, tuple(rows)),
        Table("By what was done: p50 ms, computed tokens at most", ("context", *KINDS), tuple(others)),
    )


def _typed(strokes: Sequence[Stroke]) -> list[Stroke]:
    return [stroke for stroke in strokes if stroke.kind in TYPED]


def _growth(small: Sequence[Stroke], large: Sequence[Stroke], of: Callable[[Stroke], float]) -> float:
    """How many times as much, median by median."""
    return median(map(of, large)) / median(map(of, small))


def _share_of_growth(small: Sequence[Stroke], large: Sequence[Stroke]) -> float | None:
    """Of what the longer context costs more, the network's share."""
    more = median(stroke.wall for stroke in large) - median(stroke.wall for stroke in small)
    forward = median(stroke.forward for stroke in large) - median(stroke.forward for stroke in small)
    return forward / more if more > 0 else None


def _moves(strokes: Sequence[Stroke]) -> str:
    if not strokes:
        return "-"
    return f"{number_cell(median(stroke.wall for stroke in strokes), 1)}, {max(stroke.computed for stroke in strokes)}"
