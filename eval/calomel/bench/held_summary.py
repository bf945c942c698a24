"""The answers at moments of stories, with figures and tables; every interval resamples whole stories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from calomel.bench.harm import NOTE, harm_figures, harm_table
from calomel.infer.completer import CANVAS
from calomel.report.result import (
    Interval,
    Table,
    Value,
    number_cell,
    percent_cell,
    percentile,
    put_interval,
    ratio_of_sums,
)
from calomel.selectivity.sample import Sample

CALOMEL: Final = "calomel"
REPEAT: Final = "repeat"
DRAFTS: Final = "drafts"
# Makers whose text the model writes.
MODEL_MAKERS: Final = (CANVAS,)
# The contenders beside Calomel.
BASELINES: Final = (REPEAT, DRAFTS)


@dataclass(frozen=True, slots=True)
class Said:
    """One answer.

    Attributes:
        shown: there was a suggestion.
        right: the suggestion is right, or silence is.
        maker: of the suggestion.
        reason: for silence.
        probability: the highest that the gate gave; None where it saw nothing.
        milliseconds: until the answer; None where no model was asked.
    """

    shown: bool
    right: bool
    maker: str | None = None
    reason: str | None = None
    probability: float | None = None
    milliseconds: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One moment.

    Attributes:
        id: of the moment.
        story: its story's id; intervals resample by it.
        path: of the file.
        kind: of the story.
        language: of the file.
        silent: silence is right.
        half: the last change was interrupted.
        said: by contender.
        proposed: by maker, whether each of its proposals was right, the best one first.
        samples: one per candidate that the gate saw.
        offers: the harms (`calomel.bench.harm`) of each of Calomel's offers when all are accepted from here on.
    """

    id: str
    story: str
    path: str
    kind: str
    language: str
    silent: bool
    half: bool
    said: Mapping[str, Said]
    proposed: Mapping[str, tuple[bool, ...]] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    offers: tuple[tuple[str, ...], ...] = ()


NAMES = {
    CALOMEL: "**Calomel**",
    REPEAT: "last edit repeated by text substitution",
    DRAFTS: "best rule, always shown",
}
_SHORT = {CALOMEL: "Calomel", REPEAT: "repeated", DRAFTS: "best rule"}

NOTES = (
    (
        "An answer is right if it makes at least one of the remaining changes, each of them completely, and nothing"
        " else. Silence is wrong where a change remains."
    ),
    "Precision: the share of shown suggestions that are right, including moments where silence is right.",
    (
        "Each story gives two moments: one in the middle (after some of its changes, or within its only one), and its"
        " end, where silence is right. A limit is split evenly between kinds and languages."
    ),
    "Brackets are 95 % intervals from resampling stories.",
    f"{NOTE} This counts all offers of a moment, up to eight, each accepted in turn.",
)
MAKER_NOTES = (
    (
        "Proposed: moments with a remaining edit where the source had a proposal. Right: its first, or any of them."
        " Chosen: its proposal was shown. If two sources propose the same text, both proposed it and one was chosen."
        " Canvases count only where the model wrote one."
    ),
    (
        "By itself: exact match if the source's first proposal were always shown, with the share of silent moments"
        " where it has none. `makers_right_any`: the share of moments that a perfect choice would get right."
    ),
)


def share(rows: Sequence[Row], hit: Callable[[Row], float], seed: int = 0) -> Interval | None:
    """The mean of `hit` over rows, resampled by story; None without rows."""
    stories: dict[str, tuple[float, int]] = {}
    for row in rows:
        hits, count = stories.get(row.story, (0.0, 0))
        stories[row.story] = hits + hit(row), count + 1
    hits_of, counts = [hits for hits, _ in stories.values()], [float(count) for _, count in stories.values()]
    found = ratio_of_sums(hits_of, counts, seed=seed)
    return None if found is None else Interval(found.value, found.low, found.high, len(rows))


def held_figures(rows: Sequence[Row], seed: int = 0) -> dict[str, Value]:
    """The flat keys."""
    edits = [row for row in rows if not row.silent]
    flat: dict[str, Value] = {
        "moments": len(rows),
        "edit_moments": len(edits),
        "silent_moments": len(rows) - len(edits),
        "stories": len({row.story for row in rows}),
    }
    for contender in _contenders(rows):
        prefix = "" if contender == CALOMEL else f"{contender}_"
        for key, interval in _rates(rows, contender, seed).items():
            put_interval(flat, prefix + key, interval)
        if contender != CALOMEL:
            put_interval(flat, f"exact_match_over_{contender}", _difference(edits, contender, seed))
        for name in _GROUPS:
            for value, part in _parts(rows, name):
                rates = _rates(part, contender, seed)
                for key in ("exact_match", "quiet_rate"):
                    put_interval(flat, f"{prefix}{key}_{name}_{value}", rates[key])
    for maker in makers(rows):
        for key, interval in _maker(edits, rows, maker, seed).items():
            put_interval(flat, f"maker_{maker}_{key}", interval)
    right_any = share(edits, lambda row: any(any(right) for right in row.proposed.values()), seed)
    put_interval(flat, "makers_right_any", right_any)
    times = _times(rows, CALOMEL)
    return flat | {
        "exact": flat["exact_match"],
        "quiet": flat["quiet_rate"],
        **harm_figures(offers_of(rows)),
        "latency_p50_ms": percentile(times, 50),
        "latency_p90_ms": percentile(times, 90),
        "latency_p95_ms": percentile(times, 95),
        **_written(rows),
    }


def _written(rows: Sequence[Row]) -> dict[str, Value]:
    """The share of shown edits whose text the model wrote, and the share of those that were right."""
    shown = [row.said[CALOMEL] for row in rows if row.said[CALOMEL].shown]
    written = [said for said in shown if said.maker in MODEL_MAKERS]
    return {
        "model_wrote": len(written) / len(shown) if shown else None,
        "model_wrote_right": sum(said.right for said in written) / len(written) if written else None,
    }


# Outcomes of a moment that has an edit to come, with their names in the table.
LOSSES: Final = {
    "right": "right",
    "held_back": "right, but hidden",
    "another": "another text shown",
    "wrong_text": "place found, text wrong",
    "no_place": "no place found",
}


def loss(proposed: Sequence[bool], *, shown: bool, right: bool) -> str:
    """Where an expected edit was lost, as a key of `LOSSES`; `proposed`: whether each proposal was right."""
    if right:
        return "right"
    if any(proposed):
        return "another" if shown else "held_back"
    return "wrong_text" if shown or proposed else "no_place"


def _loss(row: Row) -> str:
    said = row.said[CALOMEL]
    return loss([each for right in row.proposed.values() for each in right], shown=said.shown, right=said.right)


def losses(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """By kind of edit, the number of moments lost at each stage."""
    found = {}
    for kind, part in _parts([row for row in rows if not row.silent], "kind"):
        lost = [_loss(row) for row in part]
        found[kind] = {name: lost.count(name) for name in LOSSES}
    return found


def _loss_table(rows: Sequence[Row]) -> Table:
    counted = losses(rows)
    whole = [sum(counts[name] for counts in counted.values()) for name in LOSSES]
    cells = [(kind, *map(str, counts.values())) for kind, counts in counted.items()]
    return Table("Where edits are lost", ("kind", *LOSSES.values()), (("all", *map(str, whole)), *cells))


def held_tables(rows: Sequence[Row], seed: int = 0) -> tuple[Table, ...]:
    """All tables."""
    contenders = _contenders(rows)
    edits = [row for row in rows if not row.silent]
    whole = []
    for contender in contenders:
        rates = _rates(rows, contender, seed)
        cells = (percent_cell(rates[key]) for key in ("exact_match", "shown_rate", "precision", "quiet_rate"))
        above = "-" if contender == CALOMEL else _signed(_difference(edits, contender, seed))
        median = number_cell(percentile(_times(rows, contender), 50), 0)
        whole.append((NAMES[contender], *cells, above, median))
    silent = len(rows) - len(edits)
    title = f"Held-out next edits: {len(edits)} moments with an edit to come, {silent} where silence is right"
    columns = ("", "exact match", "shown", "precision", "quiet", "Calomel is above by", "ms, median")
    made = [(maker, *map(_short, _maker(edits, rows, maker, seed).values())) for maker in makers(rows)]
    of_makers = (
        "source", "proposed", "right: first", "right: any", "chosen", "right when chosen", "by itself: exact match",
        "by itself: quiet",
    )  # fmt: skip
    return (
        Table(title, columns, whole),
        _loss_table(rows),
        *(_by(name, rows, contenders, seed) for name in _GROUPS),
        harm_table(offers_of(rows)),
        Table("Sources of candidates", of_makers, made),
    )


_GROUPS: Final = ("kind", "language")


def _parts(rows: Sequence[Row], name: str) -> list[tuple[str, list[Row]]]:
    """The rows of each kind, or of each language, sorted by name."""
    values = sorted({getattr(row, name) for row in rows})
    return [(value, [row for row in rows if getattr(row, name) == value]) for value in values]


def offers_of(rows: Sequence[Row]) -> tuple[tuple[str, ...], ...]:
    """The harms of each offer of all moments."""
    return tuple(offer for row in rows for offer in row.offers)


def makers(rows: Sequence[Row]) -> tuple[str, ...]:
    """Every maker that proposed something, sorted by name."""
    return tuple(sorted({maker for row in rows for maker in row.proposed}))


def _contenders(rows: Sequence[Row]) -> tuple[str, ...]:
    asked = rows[0].said if rows else {}
    return tuple(name for name in (CALOMEL, *BASELINES) if name in asked)


def _times(rows: Sequence[Row], contender: str) -> list[float]:
    return [time for row in rows if (time := row.said[contender].milliseconds) is not None]


def _rates(rows: Sequence[Row], contender: str, seed: int) -> dict[str, Interval | None]:
    edits = [row for row in rows if not row.silent]
    shown = [row for row in rows if row.said[contender].shown]
    return {
        "exact_match": share(edits, lambda row: row.said[contender].right, seed),
        "shown_rate": share(edits, lambda row: row.said[contender].shown, seed),
        "precision": share(shown, lambda row: row.said[contender].right, seed),
        "quiet_rate": share([row for row in rows if row.silent], lambda row: not row.said[contender].shown, seed),
    }


def _difference(edits: Sequence[Row], contender: str, seed: int) -> Interval | None:
    return share(edits, lambda row: row.said[CALOMEL].right - row.said[contender].right, seed)


def _maker(edits: Sequence[Row], rows: Sequence[Row], maker: str, seed: int) -> dict[str, Interval | None]:
    def first(row: Row) -> bool:
        return row.proposed.get(maker, (False,))[0]

    proposed = [row for row in edits if maker in row.proposed]
    chosen = [row for row in edits if row.said[CALOMEL].maker == maker]
    silent = [row for row in rows if row.silent]
    return {
        "proposed": share(edits, lambda row: maker in row.proposed, seed),
        "right_first": share(proposed, first, seed),
        "right_any": share(proposed, lambda row: any(row.proposed[maker]), seed),
        "chosen": share(edits, lambda row: row.said[CALOMEL].maker == maker, seed),
        "chosen_right": share(chosen, lambda row: row.said[CALOMEL].right, seed),
        "alone": share(edits, first, seed),
        "alone_quiet": share(silent, lambda row: maker not in row.proposed, seed),
    }


def _by(name: str, rows: Sequence[Row], contenders: Sequence[str], seed: int) -> Table:
    found = []
    for value, part in _parts(rows, name):
        rates = [_rates(part, contender, seed) for contender in contenders]
        edits = sum(not row.silent for row in part)
        exact, quiet = ([each[key] for each in rates] for key in ("exact_match", "quiet_rate"))
        found.append((value, f"{edits} + {len(part) - edits}", *map(percent_cell, exact), *map(_short, quiet)))
    of_each = (f"{what}: {_SHORT[contender]}" for what in ("exact", "quiet") for contender in contenders)
    return Table(f"By {name}", (name, "moments", *of_each), found)


def _short(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval.value:.0%}"


def _signed(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    return f"{100 * interval.value:+.1f} [{100 * interval.low:+.1f}, {100 * interval.high:+.1f}]"
