"""What stood elsewhere between the same text before a hole and the same text behind it.

Code repeats itself: a quarter of the rests of lines in held-out files stand word for word somewhere above or below. The
longest text before the hole that occurs again is found in the prompt's own files, and what follows there, up to where
it goes on as it does behind the hole, is a draft of the answer. How much such a draft is worth beside the model's own
answer is a matter of the model: three logistic regressions, fitted for a checkpoint and stored beside it in
`recall.json`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from calomel.prompts.parts import common_prefix, common_suffix
from calomel.storage import write_whole
from calomel.suggest.wire import FieldError, read_json

# The longest match is looked for with so many of the last characters, then fewer. Three stand everywhere.
_BEGINNINGS: Final = (64, 32, 16, 8, 4)
# A longer match says nothing more.
LONGEST_MATCH: Final = 160
# Nothing longer is recalled.
_LONGEST: Final = 400
# Of each source, the last ones before the hole and the first ones behind it.
_PLACES: Final = 24
# Behind the hole, so many characters that agree tell its end from an earlier one that looks alike.
_SURE: Final = 8
LONGEST_BEHIND: Final = 60


@dataclass(frozen=True, slots=True)
class CopyCandidate:
    """A draft of what to put into a hole.

    Attributes:
        text: of the hole, not empty.
        before: so many characters before the hole agree, at most `LONGEST_MATCH`.
        behind: so many characters behind it agree, at most `LONGEST_BEHIND`.
        places: so many places were compared whose text agrees about as far.
        agreeing: so many of them have this text.
    """

    text: str
    before: int
    behind: int
    places: int
    agreeing: int


# How many characters before and behind the hole agree, and the text between.
_Place = tuple[int, int, str]


def recall(prefix: str, suffix: str, others: Sequence[str] = ()) -> CopyCandidate | None:
    """The likeliest draft for the hole between `prefix` and `suffix`, from these and from `others`; None without one.

    Of places that agree equally far before the hole, the one that agrees further behind it wins, then the text that
    most of them have, then the nearest. Costs a few searches through the texts: some 0.2 ms for an ordinary file.
    """
    line, end, _ = suffix.partition("\n")
    goal = line + end
    for size in _BEGINNINGS:
        if len(prefix) < size:
            continue
        found = list(_places(prefix, suffix, others, size, goal))
        if found:
            return _likeliest(found)
    return None


def _likeliest(found: Sequence[_Place]) -> CopyCandidate | None:
    votes = Counter(text for _, _, text in found)
    before, behind, text = max(found, key=lambda place: (*place[:2], votes[place[2]]))
    return CopyCandidate(text, before, behind, len(found), votes[text]) if text.strip() else None


def _places(prefix: str, suffix: str, others: Sequence[str], size: int, goal: str) -> Iterator[_Place]:
    """Where the last `size` characters of `prefix` stand, and what is between there and `goal`; the nearest first."""
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
    """Where the text of the hole ends in `source`, and how many characters agree behind it; -1 where it does not.

    It ends where `goal`, the rest of the hole's last line, stands first; further on where so much of the suffix follows
    that it is no chance.
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
# Log-probabilities below this say nothing more.
_LEAST: Final = -20.0


@dataclass(frozen=True, slots=True)
class _Format:
    format: int


@dataclass(frozen=True, slots=True)
class CopyScorer:
    """Weights of the three regressions, by feature, and when the model need not be asked for an answer of its own.

    Attributes:
        prior: of `PRIOR`.
        draft: of `DRAFT`.
        own: of `OWN`.
        sure: a prior from which on the model only judges the text.
    """

    prior: Mapping[str, float]
    draft: Mapping[str, float]
    own: Mapping[str, float]
    sure: float

    def is_sure(self, found: CopyCandidate, tokens: int) -> bool:
        """Whether the model's own answer to the hole would hardly be the better one."""
        return probability(self.prior, prior_features(found, tokens)) >= self.sure

    def of_draft(self, found: CopyCandidate, log_probs: Sequence[float], end_log_prob: float | None) -> float:
        """The probability that a recalled text is right, whose tokens and whose end the model gives these."""
        return probability(self.draft, draft_features(found, log_probs, end_log_prob))

    def of_own(self, log_probs: Sequence[float], end_log_prob: float | None) -> float:
        """The probability that the model's own answer is right, from what it said of its tokens."""
        return probability(self.own, own_features(log_probs, end_log_prob))

    def write(self, folder: Path) -> None:
        """Write `recall.json` into `folder`, in one step."""
        write_whole(folder / FILE, json.dumps({"format": _FORMAT, **asdict(self)}, indent=2) + "\n")

    @classmethod
    def read(cls, folder: Path) -> CopyScorer | None:
        """What the checkpoint in `folder` makes of copied texts; None where nothing is known of that.

        Raises:
            CheckpointError: the file is there, but not what it should be.
        """
        from calomel.engine import CheckpointError  # imports torch, which comes with the checkpoint

        place = folder / FILE
        try:
            data = place.read_bytes()
            if read_json(data, _Format).format != _FORMAT:
                raise CheckpointError(f"{place} is of another format than {_FORMAT}; update Calomel, or fit it anew")
            found = read_json(data, cls)
        except FileNotFoundError:
            return None
        except (OSError, FieldError) as error:
            raise CheckpointError(f"{place} cannot be read: {error}") from error
        for part, names in (("prior", PRIOR), ("draft", DRAFT), ("own", OWN)):
            if set(getattr(found, part)) != set(names):
                raise CheckpointError(f"{place}: {part} must have just {', '.join(names)}")
        return found


def probability(weights: Mapping[str, float], features: Mapping[str, float]) -> float:
    """What a regression says of `features`."""
    score = math.fsum(weights[name] * value for name, value in features.items())
    return 1.0 / (1.0 + math.exp(-max(-700.0, min(700.0, score))))


def prior_features(found: CopyCandidate, tokens: int) -> dict[str, float]:
    """What is known of a recalled text of so many tokens without the model."""
    return {
        "bias": 1.0,
        "before": math.log(found.before),
        "behind": math.log1p(found.behind),
        "agreeing": found.agreeing / found.places,
        "tokens": math.log(max(1, tokens)),
    }


def draft_features(found: CopyCandidate, log_probs: Sequence[float], end_log_prob: float | None) -> dict[str, float]:
    """The same, and what the model says."""
    said = _said(log_probs, end_log_prob)
    return prior_features(found, len(log_probs)) | {
        "log_prob": said["log_prob"],
        "least": said["least"],
        "end": _bounded(end_log_prob),
    }


def own_features(log_probs: Sequence[float], end_log_prob: float | None) -> dict[str, float]:
    """What the model said of its own answer."""
    return {"bias": 1.0, **_said(log_probs, end_log_prob), "tokens": math.log(max(1, len(log_probs)))}


def _said(log_probs: Sequence[float], end_log_prob: float | None) -> dict[str, float]:
    known = [_bounded(one) for one in (*log_probs, end_log_prob) if one is not None]
    return {"log_prob": math.fsum(known) / max(1, len(known)), "least": min(known, default=0.0)}


def _bounded(log_prob: float | None) -> float:
    return 0.0 if log_prob is None else max(_LEAST, log_prob)
