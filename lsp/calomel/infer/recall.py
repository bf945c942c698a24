"""Copying: what stands elsewhere between the same text before a hole and the same text after it.

Code repeats itself: a quarter of the line remainders in held-out files occur verbatim somewhere above or below. The
longest text before the hole that occurs again is found in the prompt's own files, and what follows there, up to where
it continues as it does after the hole, is a draft of the answer. How good such a draft is compared with the model's own
answer depends on the model: three logistic regressions, fitted for a checkpoint and stored with it in `recall.json`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from calomel.engine import CheckpointError
from calomel.infer.wire import FieldError, read_json
from calomel.prompts.parts import common_prefix, common_suffix
from calomel.storage import read_whole, write_whole

# The longest match is searched with this many of the last characters, then with fewer; three match everywhere.
_BEGINNINGS: Final = (64, 32, 16, 8, 4)
# A longer match is no better.
LONGEST_MATCH: Final = 160
# The longest text to recall.
_LONGEST: Final = 400
# Per source: the last ones before the hole and the first ones after it.
_PLACES: Final = 24
# This many matching characters after the hole tell its end from an earlier one that looks alike.
_SURE: Final = 8
LONGEST_BEHIND: Final = 60


@dataclass(frozen=True, slots=True)
class CopyCandidate:
    """A draft of what to put into a hole.

    Attributes:
        text: of the hole, not empty.
        before: number of matching characters before the hole, at most `LONGEST_MATCH`.
        behind: number of matching characters after it, at most `LONGEST_BEHIND`.
        places: number of compared places that match about as far.
        agreeing: how many of them have this text.
    """

    text: str
    before: int
    behind: int
    places: int
    agreeing: int


# The numbers of matching characters before and after the hole, and the text between.
_CopyPlace = tuple[int, int, str]


def recall(prefix: str, suffix: str, others: Sequence[str] = ()) -> CopyCandidate | None:
    """The likeliest draft for the hole between `prefix` and `suffix`, from these and from `others`; None without one.

    Of places that match equally far before the hole, the one that matches further after it wins, then the text that
    most of them have, then the nearest. Takes a few searches through the texts: some 0.2 ms for an ordinary file.
    """
    line, end, _ = suffix.partition("\n")
    goal = line + end
    for size in _BEGINNINGS:
        if len(prefix) < size:
            continue
        places = list(_places(prefix, suffix, others, size, goal))
        if places:
            return _likeliest(places)
    return None


def _likeliest(places: Sequence[_CopyPlace]) -> CopyCandidate | None:
    votes = Counter(text for _, _, text in places)
    before, behind, text = max(places, key=lambda place: (*place[:2], votes[place[2]]))
    return CopyCandidate(text, before, behind, len(places), votes[text]) if text.strip() else None


def _places(prefix: str, suffix: str, others: Sequence[str], size: int, goal: str) -> Iterator[_CopyPlace]:
    """The places of the last `size` characters of `prefix`, with the text from there to `goal`; nearest first."""
    tail, before = prefix[-size:], len(prefix) - size
    for source, nearest_last in ((prefix, True), (suffix, False), *((other, True) for other in others)):
        for start in _occurrences(source, tail, nearest_last=nearest_last):
            at = start + size
            if source is prefix and at == len(prefix):
                continue
            stop, behind = _end(source, at, suffix, goal)
            if stop >= 0:
                above, here = (
                    source[max(0, start - LONGEST_MATCH) : start],
                    prefix[max(0, before - LONGEST_MATCH) : before],
                )
                yield size + common_suffix(above, here), behind, source[at:stop]


def _occurrences(source: str, text: str, *, nearest_last: bool) -> Iterator[int]:
    at = len(source) if nearest_last else -1
    for _ in range(_PLACES):
        at = source.rfind(text, 0, at + len(text) - 1) if nearest_last else source.find(text, at + 1)
        if at < 0:
            return
        yield at


def _end(source: str, at: int, suffix: str, goal: str) -> tuple[int, int]:
    """Where the text of the hole ends in `source`, and how many characters match after it; -1 if it does not end.

    It ends at the first `goal`, the rest of the hole's last line; at a later one if so much of the suffix follows
    there that it is no coincidence.
    """
    limit = at + _LONGEST
    if not goal:
        stop = source.find("\n", at, limit)
        return (stop, 0)
    first = stop = source.find(goal, at, limit)
    if first < 0:
        return -1, 0
    behind = _agreeing(source, first, suffix)
    best, most = first, behind
    while stop >= 0 and most < len(goal) + _SURE:
        stop = source.find(goal, stop + 1, limit)
        if stop >= 0 and (count := _agreeing(source, stop, suffix)) >= max(len(goal) + _SURE, most + 1):
            best, most = stop, count
    return best, most


def _agreeing(source: str, at: int, suffix: str) -> int:
    return common_prefix(source[at : at + LONGEST_BEHIND], suffix[:LONGEST_BEHIND])


FILE: Final = "recall.json"
_FORMAT: Final = 1

PRIOR: Final = ("bias", "before", "behind", "agreeing", "tokens")
DRAFT: Final = (*PRIOR, "log_prob", "least", "end")
OWN: Final = ("bias", "log_prob", "least", "tokens")
# Log-probabilities are clipped below this.
_LEAST: Final = -20.0


@dataclass(frozen=True, slots=True)
class _Format:
    format: int


@dataclass(frozen=True, slots=True)
class CopyScorer:
    """Weights of the three regressions, by feature, and the prior above which the model's own answer is not needed.

    Attributes:
        prior: of `PRIOR`.
        draft: of `DRAFT`.
        own: of `OWN`.
        sure: from this prior on, the model only judges the text.
    """

    prior: Mapping[str, float]
    draft: Mapping[str, float]
    own: Mapping[str, float]
    sure: float

    def is_sure(self, candidate: CopyCandidate, tokens: int) -> bool:
        """Whether the model's own answer would hardly be better."""
        return probability(self.prior, prior_features(candidate, tokens)) >= self.sure

    def of_draft(self, candidate: CopyCandidate, log_probs: Sequence[float], end_log_prob: float | None) -> float:
        """The probability that a recalled text is right, from the model's log-probabilities of its tokens and end."""
        return probability(self.draft, draft_features(candidate, log_probs, end_log_prob))

    def of_own(self, log_probs: Sequence[float], end_log_prob: float | None) -> float:
        """The probability that the model's own answer is right, from its log-probabilities."""
        return probability(self.own, own_features(log_probs, end_log_prob))

    def write(self, folder: Path) -> None:
        """Write `recall.json` into `folder`, atomically."""
        write_whole(folder / FILE, json.dumps({"format": _FORMAT, **asdict(self)}, indent=2) + "\n")

    @classmethod
    def read(cls, folder: Path) -> CopyScorer | None:
        """The scorer of the checkpoint in `folder`; None if it has none.

        Raises:
            CheckpointError: the file is invalid.
        """
        place = folder / FILE
        try:
            data = read_whole(place)
            if read_json(data, _Format).format != _FORMAT:
                raise CheckpointError(f"{place} is not in format {_FORMAT}; update Calomel, or fit it again")
            scorer = read_json(data, cls)
        except FileNotFoundError:
            return None
        except (OSError, FieldError) as error:
            raise CheckpointError(f"cannot read {place}: {error}") from error
        for part, names in (("prior", PRIOR), ("draft", DRAFT), ("own", OWN)):
            if set(getattr(scorer, part)) != set(names):
                raise CheckpointError(f"{place}: {part} must have exactly {', '.join(names)}")
        return scorer


def probability(weights: Mapping[str, float], features: Mapping[str, float]) -> float:
    """The probability that a regression gives for `features`."""
    score = math.fsum(weights[name] * value for name, value in features.items())
    return 1.0 / (1.0 + math.exp(-max(-700.0, min(700.0, score))))


def prior_features(candidate: CopyCandidate, tokens: int) -> dict[str, float]:
    """The features of a recalled text of this many tokens that need no model."""
    return {
        "bias": 1.0,
        "before": math.log(candidate.before),
        "behind": math.log1p(candidate.behind),
        "agreeing": candidate.agreeing / candidate.places,
        "tokens": math.log(max(1, tokens)),
    }


def draft_features(
    candidate: CopyCandidate, log_probs: Sequence[float], end_log_prob: float | None
) -> dict[str, float]:
    """The same, with the model's log-probabilities."""
    likelihoods = _said(log_probs, end_log_prob)
    return prior_features(candidate, len(log_probs)) | {
        "log_prob": likelihoods["log_prob"],
        "least": likelihoods["least"],
        "end": _bounded(end_log_prob),
    }


def own_features(log_probs: Sequence[float], end_log_prob: float | None) -> dict[str, float]:
    """The features of the model's own answer."""
    return {"bias": 1.0, **_said(log_probs, end_log_prob), "tokens": math.log(max(1, len(log_probs)))}


def _said(log_probs: Sequence[float], end_log_prob: float | None) -> dict[str, float]:
    values = [_bounded(one) for one in (*log_probs, end_log_prob) if one is not None]
    return {"log_prob": math.fsum(values) / max(1, len(values)), "least": min(values, default=0.0)}


def _bounded(log_prob: float | None) -> float:
    return 0.0 if log_prob is None else max(_LEAST, log_prob)
