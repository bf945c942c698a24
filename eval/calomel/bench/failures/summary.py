"""Tables and keys of failures: kind by count and value, by language, by row, by place and by length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from calomel.bench.failures import edit_kinds, hole_kinds
from calomel.bench.failures.holes_asked import Likelihood
from calomel.bench.failures.verdict import Ranked, Source, Verdict
from calomel.bench.report import Table, Value, number_cell, percent_cell, put_interval
from calomel.bench.stats import wilson

SOURCES: Final[tuple[Source, ...]] = ("holes", "edits", "replay")
TITLES: Final = {
    "holes": "held-out holes",
    "edits": "held-out next edits",
    "replay": "replayed texts at the cursor",
}
# Tokens of the truth, up to and including.
LENGTHS: Final = (1, 2, 4, 8, 16, 1_000)
_SHOWN: Final = 90


def describe(source: Source, kind: str) -> str:
    """What a kind says, in words."""
    if source == "edits":
        return edit_kinds.describe(kind)
    rule = hole_kinds.RULES.get(kind)
    return "none of these" if rule is None else rule[1]


def failure_keys(verdicts: Sequence[Verdict]) -> dict[str, Value]:
    """Of each source: questions, the share that is right, and of each kind the share of questions and of value."""
    flat: dict[str, Value] = {}
    for source in SOURCES:
        mine = [verdict for verdict in verdicts if verdict.source == source]
        put_interval(flat, f"{source}.right", wilson(sum(verdict.right for verdict in mine), len(mine)))
        lost = sum(verdict.saved for verdict in mine if not verdict.right)
        for kind, failures in _by_kind(mine):
            put_interval(flat, f"{source}.{kind}", wilson(len(failures), len(mine)))
            flat[f"{source}.{kind}.characters"] = sum(verdict.saved for verdict in failures)
            flat[f"{source}.{kind}.value_share"] = sum(verdict.saved for verdict in failures) / max(1, lost)
    return flat


def failure_tables(verdicts: Sequence[Verdict]) -> tuple[Table, ...]:
    """All tables, source by source; of a source without questions none."""
    found: list[Table] = []
    for source in SOURCES:
        mine = [verdict for verdict in verdicts if verdict.source == source]
        if not mine:
            continue
        found.append(_kinds(source, mine))
        found.append(_crossed(f"{TITLES[source].capitalize()} by language", mine, lambda verdict: verdict.language))
        found.append(_crossed(f"{TITLES[source].capitalize()} by row", mine, lambda verdict: verdict.row))
        if source != "edits":
            found.append(_crossed(f"{TITLES[source].capitalize()} by place", mine, lambda verdict: verdict.place))
        if any(verdict.tokens for verdict in mine):
            found.append(_lengths(mine))
    return tuple(found)


def likelihood_table(likelihoods: Sequence[Likelihood]) -> tuple[Table, dict[str, Value]]:
    """What the truth costs, left to right: its first token, the others and the end, by where the cursor stands."""
    rows, flat = [], dict[str, Value]()
    for name, inside in (("inside_word", True), ("between_words", False)):
        mine = [each for each in likelihoods if each.inside_word is inside and each.tokens]
        parts = {
            "first": [-each.tokens[0] for each in mine],
            "second": [-each.tokens[1] for each in mine if len(each.tokens) > 1],
            "later": [-token for each in mine for token in each.tokens[2:]],
            "end": [-each.end for each in mine],
        }
        means = {part: sum(found) / len(found) if found else None for part, found in parts.items()}
        flat |= {f"nats.{name}.{part}": mean for part, mean in means.items()}
        flat[f"nats.{name}.n"] = len(mine)
        rows.append((name.replace("_", " "), str(len(mine)), *(number_cell(mean) for mean in means.values())))
    columns = ("cursor", "holes", "first token", "second", "later ones", "end")
    return Table("What the truth costs, in nats, read left to right", columns, tuple(rows)), flat


def quoted(failures: Sequence[Ranked], title: str) -> str:
    """Failures to look at, as a list in Markdown."""
    lines = [f"### {title}", ""]
    for number, failure in enumerate(failures, 1):
        verdict = failure.verdict
        also = f", also {', '.join(verdict.also)}" if verdict.also else ""
        asked = f"{verdict.row}, {verdict.language}, {verdict.place}"
        lines += [
            f"{number}. **{verdict.kind}**{also} ({asked}; value {failure.value:.2f})",
            "",
            f"        before  {_short(verdict.tail, last=True)}",
            f"        truth   {_short(verdict.truth)}",
            f"        answer  {'(nothing)' if verdict.answer is None else _short(verdict.answer)}",
            "",
        ]
    return "\n".join(lines)


def _by_kind(verdicts: Sequence[Verdict]) -> list[tuple[str, list[Verdict]]]:
    """Failures by kind, the kind that lost most characters first."""
    found: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.kind is not None:
            found.setdefault(verdict.kind, []).append(verdict)
    return sorted(found.items(), key=lambda entry: (-sum(each.saved for each in entry[1]), -len(entry[1]), entry[0]))


def _kinds(source: Source, verdicts: Sequence[Verdict]) -> Table:
    lost = sum(verdict.saved for verdict in verdicts if not verdict.right)
    also = Counter(kind for verdict in verdicts for kind in verdict.also)
    rows = []
    for kind, failures in _by_kind(verdicts):
        saved = sum(verdict.saved for verdict in failures)
        rows.append((
            kind,
            describe(source, kind),
            str(len(failures)),
            percent_cell(wilson(len(failures), len(verdicts))),
            f"{saved:,}",
            f"{saved / max(1, lost):.0%}",
            str(also[kind]),
        ))  # fmt: skip
    right = sum(verdict.right for verdict in verdicts)
    gained = sum(verdict.saved for verdict in verdicts if verdict.right)
    rows.append(
        ("right", "", str(right), percent_cell(wilson(right, len(verdicts))), f"{gained:,}", "-", "-"),
    )  # fmt: skip
    columns = ("kind", "what it says", "count", "share", "characters", "of all lost", "also holds")
    return Table(f"Failures: {len(verdicts)} {TITLES[source]}", columns, tuple(rows))


def _crossed(title: str, verdicts: Sequence[Verdict], of: Callable[[Verdict], str]) -> Table:
    """Kinds by something: counts."""
    values = sorted({of(verdict) for verdict in verdicts})
    met = Counter((verdict.kind, of(verdict)) for verdict in verdicts)
    names = [*(kind for kind, _ in _by_kind(verdicts)), None]
    rows = tuple((kind or "right", *(str(met[kind, value]) for value in values)) for kind in names)
    return Table(title, ("kind", *values), rows)


def _lengths(verdicts: Sequence[Verdict]) -> Table:
    """Right answers by tokens of the truth, and what became of the others."""
    rows, least = [], 1
    for most in LENGTHS:
        mine = [verdict for verdict in verdicts if least <= verdict.tokens <= most]
        kinds = Counter(verdict.kind for verdict in mine if verdict.kind is not None).most_common(3)
        told = ", ".join(f"{kind} {count}" for kind, count in kinds)
        name = str(least) if least == most else f"{least} to {most}" if most < LENGTHS[-1] else f"{least} and more"
        right = percent_cell(wilson(sum(each.right for each in mine), len(mine)))
        length = number_cell(sum(each.said for each in mine) / len(mine) if mine else None, 1)
        rows.append((name, str(len(mine)), right, length, told))
        least = most + 1
    columns = ("tokens", "holes", "right", "tokens said, mean", "most frequent kinds")
    return Table("By length of the truth", columns, tuple(rows))


def _short(text: str, *, last: bool = False) -> str:
    """On one line, line ends made visible."""
    line = text.replace("\n", "⏎").replace("\t", "→")
    if len(line) <= _SHOWN:
        return line
    return f"…{line[-_SHOWN:]}" if last else f"{line[:_SHOWN]}…"
