"""The figures of a replay: how often something was shown, accepted and kept, what that saved, and how sure it was.

Most figures are a sum over opportunities divided by another such sum; `FIGURES` names them, with the table's words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from calomel.code.trees import Work, error_count
from calomel.prompts.parts import changed_span
from calomel.replay.opportunity import LogResult, Opportunity, Shown
from calomel.report.result import Floats, Interval, Items, Resampling, wilson
from calomel.selectivity.sample import auroc, ece

ORDERS: Final = range(1, 7)
BETA: Final = 2.0
_SPACES: Final = re.compile(r"\s+")


def chrf(candidate: str, reference: str) -> float:
    """0 to 100: F-scores of all orders that either text has, averaged; 100 when both are empty."""
    scores = []
    for order in ORDERS:
        ours, theirs = _grams(candidate, order), _grams(reference, order)
        if ours or theirs:
            matches = (ours & theirs).total()
            scores.append(_f_score(_share(matches, ours.total()), _share(matches, theirs.total())))
    return 100.0 * sum(scores) / len(scores) if scores else 100.0


def changed_middle(before: str, after: str) -> str:
    """The lines of `after` between those that it shares with the beginning and the end of `before`."""
    old, new = _lines(before), _lines(after)
    start, _, end = changed_span(old, new)
    return "\n".join(new[start:end])


def suite_delta_chrf(before: str, actual: str, expected: str) -> float:
    """0 to 100: chrF of the changed lines alone, as the public suite of scenarios computes it.

    White space counts as it is, and so does an empty line at the end. Deletions that leave no trace in the changed
    lines do not count.
    """
    return chrf(changed_middle(before, actual), changed_middle(before, expected))


def delta_chrf(before: str, actual: str, expected: str) -> float:
    """0 to 100: how well the added and removed n-grams agree with those that should have been.

    Runs of white space count as one space. Precision and recall are averaged over the orders, an order in which
    neither side changed anything counts as right.
    """
    start, ours, theirs = (_SPACES.sub(" ", text) for text in (before, actual, expected))
    precision = recall = 0.0
    for order in ORDERS:
        made, wanted = _changes(start, ours, order), _changes(start, theirs, order)
        if not made and not wanted:
            precision, recall = precision + 1, recall + 1
            continue
        matches = (made & wanted).total()
        precision += _share(matches, made.total())
        recall += _share(matches, wanted.total())
    return 100.0 * _f_score(precision / len(ORDERS), recall / len(ORDERS))


def _changes(before: str, after: str, order: int) -> Counter[tuple[bool, str]]:
    """N-grams added (True) and removed (False), with counts."""
    old, new = _grams(before, order), _grams(after, order)
    came = {(True, gram): count for gram, count in (new - old).items()}
    return Counter(came | {(False, gram): count for gram, count in (old - new).items()})


def _grams(text: str, order: int) -> Counter[str]:
    return Counter(text[at : at + order] for at in range(len(text) - order + 1))


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _f_score(precision: float, recall: float) -> float:
    weighted = BETA**2 * precision + recall
    return (1 + BETA**2) * precision * recall / weighted if weighted else 0.0


def is_exact(actual: str, expected: str) -> bool:
    """Whether the texts are the same, except for the kind of line ends and a final one."""
    return _same_ends(actual) == _same_ends(expected)


def _same_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")


# A replay has time: this limit only prevents an endless parse; it is not the editor's budget.
_SECONDS = 2.0


def parse_error_delta(before: str, after: str, language_id: str) -> int | None:
    """Syntax errors in the whole text after a suggestion, minus those before it; None without a grammar."""
    earlier, later = (error_count(text, language_id, _SECONDS, Work()) for text in (before, after))
    return None if earlier is None or later is None else later - earlier


Of = Callable[[Opportunity], float | None]
Score = Callable[[Floats, Floats], float | None]

# A person saw these and decided: all others had no chance, or are reported separately.
_JUDGED: Final = frozenset({"accepted", "partly", "rejected"})


def judged(item: Opportunity) -> Shown | None:
    """The suggestion, if a person could have decided about it, whether or not the gate let it through."""
    found = item.candidate
    return found if found is not None and found.outcome in _JUDGED else None


def seen(item: Opportunity) -> Shown | None:
    """The suggestion, if it was on the screen and long enough to count."""
    return judged(item) if item.shown else None


def was_asked(item: Opportunity) -> bool:
    """A model was asked, or a model's answer was reused."""
    return item.candidate is not None or item.computed_tokens + item.cached_tokens > 0


def of_seen(value: Callable[[Shown], float | None]) -> Of:
    """`value` of the seen suggestion; None for opportunities without one."""
    return lambda item: None if (found := seen(item)) is None else value(found)


def has_outcome(*outcomes: str) -> Of:
    """1 for a seen suggestion that had one of these outcomes, 0 for others."""
    return of_seen(lambda shown: float(shown.outcome in outcomes))


def _each(_: Opportunity) -> float:
    return 1.0


def _is_seen(item: Opportunity) -> float:
    return float(seen(item) is not None)


def _kept(shown: Shown) -> float | None:
    """1 if what was accepted, at least in part, was kept, else 0; None if nothing was, or the log cannot tell."""
    return None if shown.outcome == "rejected" or shown.kept is None else float(shown.kept)


def _best(score: Callable[[str, str, str], float]) -> Of:
    """The best score against the right texts: those a scenario names, else what the person wrote."""
    return of_seen(lambda shown: max((score(shown.before, shown.after, each) for each in right(shown)), default=None))


def right(shown: Shown) -> tuple[str, ...]:
    """The right texts for its lines."""
    named = tuple(each for each in shown.alternatives if each is not None)
    return named or (() if shown.expected is None else (shown.expected,))


def _tokens(shown: Shown) -> float:
    """Tokens accepted; for a part of a suggestion, its share of the tokens."""
    if not shown.accepted_characters:
        return 0.0
    whole = max(1.0, shown.signals.get("characters_inserted", 0.0), float(shown.accepted_characters))
    return max(1.0, shown.signals.get("tokens", 0.0)) * shown.accepted_characters / whole


class Figure(NamedTuple):
    """A sum over opportunities, divided by another one.

    Attributes:
        of: what is summed; None counts as nothing.
        over: the divisor; None: the number of opportunities that have a value.
        words: in the table; empty: in the JSON only.
        digits: decimals; None: a share in percent.
        share: zeros and ones, with Wilson's bounds where all are alike.
    """

    of: Of
    over: Of | None = None
    words: str = ""
    digits: int | None = None
    share: bool = False


_saved: Final[Of] = of_seen(lambda shown: float(shown.saved_characters))
_accepted_characters: Final[Of] = of_seen(lambda shown: float(shown.accepted_characters))

FIGURES: Final[dict[str, Figure]] = {
    "characters_per_opportunity": Figure(_saved, _each, "characters saved per opportunity", 3),
    "accepted_characters_per_opportunity": Figure(
        _accepted_characters, _each, "characters accepted per opportunity", 3
    ),
    "shown_rate": Figure(_is_seen, _each, "shown of opportunities", share=True),
    "acceptance_rate": Figure(has_outcome("accepted"), _is_seen, "accepted of shown", share=True),
    "partly_rate": Figure(has_outcome("partly"), _is_seen, "partly accepted of shown", share=True),
    "kept_rate": Figure(of_seen(_kept), None, "kept of accepted", share=True),
    "wasted_per_opportunity": Figure(has_outcome("rejected"), _each, share=True),
    "exact_match": Figure(
        _best(lambda _, after, expected: float(is_exact(after, expected))), None, "exact match", share=True
    ),
    "delta_chrf": Figure(_best(delta_chrf), None, "delta-chrF", 1),
    "parse_error_delta": Figure(
        of_seen(lambda shown: shown.signals.get("parse_error_delta")), None, "parse errors added", 3
    ),
    "computed_tokens": Figure(lambda item: float(item.computed_tokens), was_asked, "tokens computed per question", 0),
    "cached_tokens": Figure(lambda item: float(item.cached_tokens), was_asked, "tokens cached per question", 0),
    "cached_share": Figure(
        lambda item: float(item.cached_tokens), lambda item: float(item.computed_tokens + item.cached_tokens)
    ),
}
# What the engine did; empty where that was not counted.
STEPS: Final[dict[str, Figure]] = {
    "steps_per_question": Figure(lambda item: float(item.steps), was_asked, "engine steps per question", 2),
    "rows_per_question": Figure(lambda item: float(item.rows), was_asked),
    "steps_per_accepted_token": Figure(lambda item: float(item.steps), of_seen(_tokens), "steps per accepted token", 1),
    "steps_per_accepted_character": Figure(
        lambda item: float(item.steps), _accepted_characters, "steps per accepted character", 1
    ),
    "rows_per_accepted_character": Figure(lambda item: float(item.rows), _accepted_characters),
}
PERCENTILES: Final = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Offers:
    """All our opportunities, then all offers of the recorded assistants, so that both are resampled alike.

    Attributes:
        ours: our opportunities.
        theirs: offers of the recorded assistants.
        minutes: with typing, over all logs.
        typed: characters that people typed.
    """

    ours: tuple[Opportunity, ...]
    theirs: tuple[Opportunity, ...]
    minutes: float
    typed: int

    @classmethod
    def of(cls, results: Sequence[LogResult]) -> Offers:
        """The offers of all logs, in order."""
        return cls(
            tuple(item for result in results for item in result.opportunities),
            tuple(item for result in results for item in result.recorded),
            sum(result.active_minutes for result in results),
            sum(result.typed_characters for result in results),
        )

    def resampling(self, seed: int) -> Resampling:
        """Draws minutes of logs: events within one are correlated."""
        return Resampling([(item.log, int(item.time // 60)) for item in (*self.ours, *self.theirs)], seed)

    def column(self, of: Of) -> list[float]:
        """A value for each of ours, then zeros for theirs."""
        return [*_values(self.ours, of), *([0.0] * len(self.theirs))]


def measure(offers: Offers, resampling: Resampling) -> dict[str, Interval | None]:
    """All our figures, by name."""
    found: dict[str, Interval | None] = {}
    counted = any(item.steps for item in offers.ours)
    for name, figure in {**FIGURES, **STEPS}.items():
        over: Of = figure.over or (lambda item, of=figure.of: float(of(item) is not None))  # type: ignore[misc]
        ratio = resampling.share if figure.share else resampling.ratio
        known = counted or name not in STEPS
        found[name] = ratio(offers.column(figure.of), offers.column(over)) if known else None
    found["saved_share"] = resampling.rate(offers.column(_saved), offers.typed)
    found["wasted_per_minute"] = resampling.rate(offers.column(has_outcome("rejected")), offers.minutes)
    found |= ranking(resampling, *confidences(offers.ours))
    values = np.asarray([item.latency_ms for item in offers.ours])
    asked = [number for number, item in enumerate(offers.ours) if was_asked(item)]
    for percent in PERCENTILES:

        def latency(items: Items, percent: int = percent) -> float | None:
            return float(np.percentile(values[items], percent)) if len(items) else None

        found[f"latency_p{percent}_ms"] = resampling.statistic(asked, latency)
    return found


def confidences(items: Sequence[Opportunity]) -> tuple[list[int], Floats, Floats]:
    """Which items a person could have decided about; for all items, the confidence, and 1 for accepted whole.

    Those that the gate held back count, too: otherwise it would judge itself.
    """
    found = [(number, shown) for number, item in enumerate(items) if (shown := judged(item)) is not None]
    scores, taken = np.zeros(len(items)), np.zeros(len(items))
    for number, shown in found:
        scores[number], taken[number] = shown.confidence or 0.0, shown.outcome == "accepted"
    return [number for number, shown in found if shown.confidence is not None], scores, taken


def ranking(resampling: Resampling, items: Sequence[int], scores: Floats, taken: Floats) -> dict[str, Interval | None]:
    """How well confidences `scores` separate `taken` (1) from not taken (0), both `[n]`, over some `items`."""
    found: dict[str, Interval | None] = {}
    for name, score in SCORES.items():

        def statistic(drawn: Items, score: Score = score) -> float | None:
            return score(scores[drawn], taken[drawn])

        found[name] = resampling.statistic(items, statistic)
    return found


def aurc(scores: Floats, taken: Floats) -> float | None:
    """Area under the risk-coverage curve: the share not taken among the k surest, averaged over k (El-Yaniv 2010).

    Equal confidences share their outcome, so that the order of suggestions decides nothing. None without suggestions.
    """
    if not len(taken):
        return None
    order = np.argsort(-scores, kind="stable")
    _, inverse, counts = np.unique(-scores[order], return_inverse=True, return_counts=True)
    even = (np.bincount(inverse, weights=taken[order]) / counts)[inverse]
    return float(np.mean(1 - np.cumsum(even) / np.arange(1, len(even) + 1)))


def brier(scores: Floats, taken: Floats) -> float | None:
    """Mean squared distance of confidence and outcome (Brier 1950)."""
    return float(np.mean((scores - taken) ** 2)) if len(scores) else None


SCORES: Final[dict[str, Score]] = {"auroc": auroc, "ece": ece, "brier": brier, "aurc": aurc}

MAKER_COUNTS: Final = ("proposed", "chosen", "shown", "accepted", "partly")


def makers(ours: Sequence[Opportunity]) -> dict[str, dict[str, int]]:
    """Opportunities by maker and by what became of its proposals.

    Judged: the maker had one. Chosen: its proposal was the surest that the gate saw. Shown: a person saw it. Accepted
    and partly: of those shown.
    """
    counts: dict[str, dict[str, int]] = {}
    for item in ours:
        chosen = "" if item.candidate is None else item.candidate.maker
        for maker in {*item.makers, chosen} - {""}:
            counted = counts.setdefault(maker, dict.fromkeys(MAKER_COUNTS, 0))
            counted["proposed"] += 1
            counted["chosen"] += maker == chosen
            found = seen(item)
            if maker == chosen and found is not None:
                counted["shown"] += 1
                if found.outcome != "rejected":
                    counted[found.outcome] += 1
    return dict(sorted(counts.items()))


def recorded(
    offers: Offers, resampling: Resampling, results: Sequence[LogResult]
) -> tuple[dict[str, Interval | None], dict[str, int]]:
    """Ours beside the recorded assistant, under the same simulated user and at its shown rate, and counts.

    Our surest suggestions are used, as many as it showed; the intervals do not choose them again. For the recorded
    assistant this is an upper bound: a text that was accepted is in the log because it was offered. None without
    offers.
    """
    shown_by_it = sum(seen(item) is not None for item in offers.theirs)
    accepts, real = sum(result.real_accepts for result in results), sum(result.real_offers for result in results)
    own = [replace(item, shown=chosen) for item, chosen in _surest(offers.ours, shown_by_it)]

    def sides(*ratio: Of) -> tuple[list[list[float]], list[list[float]]]:
        """Our columns and the assistant's, for both sums of a ratio."""
        mine = [[*_values(own, of), *([0.0] * len(offers.theirs))] for of in ratio]
        return mine, [[*([0.0] * len(own)), *_values(offers.theirs, of)] for of in ratio]

    accepted = sides(has_outcome("accepted"), _is_seen)
    kept = sides(of_seen(_kept), of_seen(lambda shown: float(_kept(shown) is not None)))
    mine, its = (above for above, _ in sides(_saved, _is_seen))
    there = offers.column(_each)
    figures = {
        "recorded_shown_rate": resampling.share(accepted[1][1], there),
        "recorded_acceptance_same_rule": resampling.share(*accepted[1]),
        "acceptance_at_recorded_rate": resampling.share(*accepted[0]),
        "acceptance_difference_at_recorded_rate": resampling.difference(*accepted),
        "recorded_kept_rate": resampling.share(*kept[1]),
        "kept_rate_at_recorded_rate": resampling.share(*kept[0]),
        "recorded_characters_per_opportunity": resampling.ratio(its, there),
        "characters_per_opportunity_at_recorded_rate": resampling.ratio(mine, there),
        "characters_difference_at_recorded_rate": resampling.difference((mine, there), (its, there)),
        "real_acceptance_rate": wilson(min(accepts, real), real),
    }
    if not shown_by_it:
        return dict.fromkeys(figures), {}
    counts = {"recorded_shown": shown_by_it, "shown_at_recorded_rate": sum(item.shown for item in own)}
    return figures, {**counts, "real_accepts": accepts, "real_offers": real}


def _values(items: Sequence[Opportunity], of: Of) -> list[float]:
    return [float(of(item) or 0.0) for item in items]


def _surest(items: Sequence[Opportunity], count: int) -> list[tuple[Opportunity, bool]]:
    """All items, each with whether it is among the `count` surest a person could decide about; ties go to the earlier.

    While the person writes what one of them proposed, another one in the same file would not have been asked for: the
    less sure of such a pair is left out, so that no character is saved twice.
    """
    ranked = sorted(
        (-(shown.confidence or 0.0), number) for number, item in enumerate(items) if (shown := judged(item)) is not None
    )
    chosen: set[int] = set()
    spans: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for _, number in ranked:
        if len(chosen) == count:
            break
        item = items[number]
        given = None if item.candidate is None else item.candidate.given
        span = (item.time, item.time if given is None else given)
        taken = spans.setdefault((item.log, item.path), [])
        if not any(span[0] < last and first < span[1] for first, last in taken):
            taken.append(span)
            chosen.add(number)
    return [(item, number in chosen) for number, item in enumerate(items)]
