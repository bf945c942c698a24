"""What is known of a source of suggestions: a prior for its class, and what became of its suggestions on this machine.

A source is a model or a rule. Each has, by kind of suggestion, a small logistic model over what is known without
log-probabilities, learned online: its weights begin at the prior of the source's class and move with every outcome, by
less the more outcomes there are (assumed-density filtering with independent weights; Murphy, *Probabilistic Machine
Learning*, 2022, 8.5). Where a calibrator was fitted to the model, its probability takes the place of the prior.

The names `quiet`, `balanced` and `eager` stand for probabilities. One person accepts every second suggestion of a
model, another one in ten, and both want to see those that are likelier than most: so these probabilities follow, in
part, how much less often a source is accepted than others of its class.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, Self

import msgspec

from calomel.selectivity.calibrator import RIGHT, Subject, sigmoid
from calomel.storage import read_whole, write_whole

LOG: Final = logging.getLogger(__name__)

# `small` fills holes and was fitted with its filters; `fim` fills holes; `edits` was trained to rewrite regions;
# `hosted` is a vendor's service for either; `rule` is one of our own.
SourceClass = Literal["small", "fim", "edits", "hosted", "rule"]

# Incremented when an older reader would misunderstand a file.
FORMAT: Final = 1
# Outcomes of evidence that a prior is worth: for the bias, and for every other weight.
_BIAS_WORTH: Final = 4.0
_WORTH: Final = 8.0
# With each outcome, what was learned before counts this much less: people and projects change.
_MEMORY: Final = 0.998
# How much of what a source lost, in logits, its thresholds give way: of a source of which less than one in thirty is
# accepted, `balanced` shows nothing usual.
_YIELDS: Final[Mapping[str, float]] = {"quiet": 0.5, "balanced": 0.55, "eager": 0.8}
# Where a text for the cursor ends: its tokens, each given those before it, are less likely right together.
FLOORS: Final[Mapping[str, float]] = {"quiet": 0.7, "balanced": 0.5, "eager": 0.3}
# Nats.
_FURTHEST: Final = 12.0

# The priors of a model's suggestions, in logits: how often an edit, or a text at the cursor, of such a source is right
# where nothing speaks against it; and what the signals mean, the same for all of them.
_BIAS: Final[Mapping[SourceClass, Mapping[str, float]]] = {
    "fim": {"edit": -0.4, "fill": -0.2},
    "edits": {"edit": 0.9, "fill": 0.2},
    "hosted": {"edit": 1.0, "fill": 0.4},
}
_SIGNALS: Final[Mapping[str, float]] = {
    "likely": 1.2, "size": -0.1, "known": 1.2, "flow": 0.6, "replaces": 0.3, "since": -0.3, "lately": 1.0,
    "agrees": 0.8, "cut": -0.8,
}  # fmt: skip
# What a filter of doubt takes away, by class. Suggestions of a `small` model and of a rule are dropped.
DOUBTS: Final[Mapping[SourceClass, Mapping[str, float]]] = {
    "fim": {
        "deletes_too_much": -1.5, "too_large": -1.5, "reverts_edit": -1.5, "resumes_undone": -1.5,
        "reinserts_deleted": -1.5, "deletes_typed": -1.5, "names_neighbour": -0.2, "unbalanced": -3.0,
        "unknown_name": -0.5, "unparsable": -2.5,
    },
    "edits": {
        "deletes_too_much": -0.3, "too_large": -0.8, "reverts_edit": -0.5, "resumes_undone": -0.8,
        "reinserts_deleted": -0.8, "deletes_typed": -0.8, "names_neighbour": -0.2, "unbalanced": -0.8,
        "unknown_name": -0.3, "unparsable": -0.2,
    },
}  # fmt: skip
# A rule knows no more than its evidence: what a model says of the same lines weighs more.
_OF_RULES: Final[Mapping[str, float]] = {
    "agrees": 1.0, "differs": -2.5, "leaves": -0.7, "distance": -0.1, "lately": 0.4, "support": 0.5,
}  # fmt: skip


def _prior(source: Source, kind: str, *, fitted: bool) -> dict[str, float]:
    """The weights of a source without a record; with a fit, only those of what the fit has not seen."""
    if source.kind == "rule":
        if kind == "fill":
            # It only says that the same stood elsewhere.
            return {} if fitted else {"bias": -3.0}
        right = RIGHT.get(source.name, 0.5)
        # Counted in edits that were made for it; among people's own edits a rule is right less often.
        return {} if fitted else {**_OF_RULES, "bias": math.log(right / (1 - right)) / 2}
    if source.kind == "small":
        return {}
    weights = {} if fitted else {**_SIGNALS, "bias": _BIAS[source.kind][kind]}
    return {**weights, **_doubts("fim" if source.kind == "fim" else "edits")}


def _doubts(kind: SourceClass) -> dict[str, float]:
    return {f"doubt:{name}": weight for name, weight in DOUBTS[kind].items()}


@dataclass(frozen=True, slots=True)
class Source:
    """Who makes suggestions.

    Attributes:
        name: of a rule, or what identifies a model's weights.
        kind: its class.
        title: as shown to people.
    """

    name: str
    kind: SourceClass
    title: str = ""


def evidence(subject: Subject, doubts: Collection[str] = ()) -> dict[str, float]:
    """What speaks for a suggestion and against it, by name, in numbers around zero."""
    number, signals = subject.number, subject.signals
    found = {
        "bias": 1.0,
        "likely": _likely(subject),
        "size": math.log1p(subject.count("characters_inserted") + subject.count("characters_removed")) / 3 - 1.1,
        "distance": math.log1p(subject.count("distance")) / 2,
        "known": 0.0 if signals.get("known_words") is None else number("known_words") - 0.6,
        "flow": math.log1p(subject.count("recent_edits")) / 2 - 0.6,
        "replaces": float(bool(number("characters_removed"))) - 0.5,
        "since": 0.0 if signals.get("since_edit") is None else math.log1p(min(60.0, subject.count("since_edit"))) / 2,
        "lately": (subject.count("accepted") + 1) / (subject.count("accepted") + subject.count("rejected") + 2) - 0.5,
        "agrees": math.log1p(subject.count("backed")),
        "differs": float(bool(number("opposed"))),
        "leaves": float(bool(number("unmoved"))),
        "support": math.log1p(max(0.0, number("support") - 1)),
        "cut": float(signals.get("finish_reason") not in {None, "", "stop"}),
    }
    found |= dict.fromkeys((f"doubt:{name}" for name in doubts), 1.0)
    return {name: value for name, value in found.items() if value}


def _likely(subject: Subject) -> float:
    """The model's own confidence, in nats from the usual one; 0 if it tells none."""
    if subject.signals.get("mean_log_prob") is None:
        return 0.0
    mean = subject.number("mean_log_prob")
    if subject.kind == "edit":
        # Most tokens of a rewrite copy the region: what matters is the sum over the others.
        return max(-2.0, min(0.5, 0.5 + mean * (subject.count("tokens") + 1) / 4))
    return max(-2.0, min(0.6, mean + 0.6))


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One source's record for one kind of suggestion.

    Attributes:
        shown: suggestions with a known outcome.
        accepted: those that were accepted, wholly or in part, or typed by hand.
        shifts: by name, how far a weight has moved from its prior.
        worth: by name, the evidence behind that.
        usual: by name, the mean of the evidence.
        title: of the source, for people.
    """

    shown: float = 0.0
    accepted: float = 0.0
    shifts: Mapping[str, float] = field(default_factory=dict)
    worth: Mapping[str, float] = field(default_factory=dict)
    usual: Mapping[str, float] = field(default_factory=dict)
    title: str = ""

    def learn(self, found: Mapping[str, float], probability: float, *, accepted: bool) -> Self:
        """The record after one more outcome of a suggestion with the evidence `found`."""
        shifts = dict(self.shifts)
        worth = {name: value * _MEMORY for name, value in self.worth.items()}
        error, doubt = float(accepted) - probability, probability * (1 - probability)
        for name, value in found.items():
            worth[name] = worth.get(name, 0.0) + doubt * value * value
            least = _BIAS_WORTH if name == "bias" else _WORTH
            shifts[name] = shifts.get(name, 0.0) + error * value / (least + worth[name])
        shown, taken = self.shown + 1, self.accepted + accepted
        names = self.usual.keys() | found.keys()
        usual = {name: self.usual.get(name, 0.0) for name in names}
        usual = {name: mean + (found.get(name, 0.0) - mean) / shown for name, mean in usual.items()}
        return replace(self, shown=shown, accepted=taken, shifts=shifts, worth=worth, usual=usual)

    def threshold(self, name: str, usual: float) -> float:
        """The probability that `name` stands for; `usual` without a record."""
        moved = sum(shift * self.usual.get(each, 0.0) for each, shift in self.shifts.items())
        shift = min(0.0, moved) * _YIELDS.get(name, 0.0)
        return usual if not shift else sigmoid(_logit(usual) + shift)


_Outcome = tuple[Source, str, dict[str, float], float, bool]


class Records:
    """The records of all sources of one editor, as in a file that several editors share."""

    def __init__(self, path: Path | None = None) -> None:
        """Read `path`, if it is there; a damaged file is reported in the log and not used."""
        self._path = path
        self._known: dict[str, SourceRecord] = {} if path is None else _read(path)
        self._new: list[_Outcome] = []

    def of(self, source: Source, kind: str) -> SourceRecord:
        """The record of a source for a kind of suggestion."""
        return self._known.get(_key(source, kind), SourceRecord())

    def probability(
        self, source: Source, subject: Subject, doubts: Collection[str] = (), fit: float | None = None
    ) -> float:
        """The probability that a suggestion is accepted.

        Args:
            source: who made it.
            subject: what is known of it.
            doubts: the filters of doubt that it fails.
            fit: the probability that a calibrator fitted to this model gives; None without one.
        """
        record = self.of(source, subject.kind)
        prior = _prior(source, subject.kind, fitted=fit is not None)
        if fit is not None and not record.shown and not doubts:
            return fit
        score = 0.0 if fit is None else _logit(fit)
        for name, value in evidence(subject, doubts).items():
            score += (prior.get(name, 0.0) + record.shifts.get(name, 0.0)) * value
        return sigmoid(max(-_FURTHEST, min(_FURTHEST, score)))

    def learn(
        self, source: Source, subject: Subject, doubts: Collection[str], probability: float, *, accepted: bool
    ) -> None:
        """An outcome is known: of a suggestion that was shown, or of one that was held back and typed by hand."""
        outcome = source, subject.kind, evidence(subject, doubts), probability, accepted
        self._new.append(outcome)
        _learn(self._known, outcome)

    def save(self) -> None:
        """Add what is new to the file, which another editor may have changed meanwhile. Raises OSError."""
        if self._path is None or not self._new:
            return
        known = _read(self._path)
        new, self._new = self._new, []
        for outcome in new:
            _learn(known, outcome)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        rows = {key: asdict(record) for key, record in sorted(known.items())}
        write_whole(self._path, json.dumps({"format": FORMAT, "sources": rows}, indent=1, allow_nan=False) + "\n")
        self._known = known

    def rows(self) -> Iterator[tuple[str, str, SourceRecord]]:
        """Name, kind and record of every source, for people."""
        for key, record in sorted(self._known.items()):
            kind, _, name = key.partition(":")
            yield record.title or name, kind, record


def _logit(probability: float) -> float:
    return math.log(max(probability, 1e-9) / max(1 - probability, 1e-9))


def _learn(known: dict[str, SourceRecord], outcome: _Outcome) -> None:
    source, kind, found, probability, accepted = outcome
    key = _key(source, kind)
    record = known.get(key) or SourceRecord(title=source.title)
    known[key] = record.learn(found, probability, accepted=accepted)


def _key(source: Source, kind: str) -> str:
    return f"{kind}:{'rule:' if source.kind == 'rule' else ''}{source.name}"


def _read(path: Path) -> dict[str, SourceRecord]:
    try:
        found = msgspec.json.decode(read_whole(path))
        if found["format"] == FORMAT:
            return msgspec.convert(found["sources"], dict[str, SourceRecord])
        LOG.warning("ignoring %s: another version wrote it", path)
    except FileNotFoundError:
        pass
    except (KeyError, TypeError, AttributeError, ValueError, OSError, RecursionError) as error:
        LOG.warning("ignoring %s: it is not a file of records (%s)", path, type(error).__name__)
    return {}
