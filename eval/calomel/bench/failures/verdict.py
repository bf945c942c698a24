"""What became of one question: right, or a failure of a kind, with what it would have been worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from calomel.bench.failures.words import Place

Source = Literal["holes", "edits", "replay"]

# Of what stands before the cursor.
TAIL_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class Verdict:
    """One question.

    Attributes:
        key: names it within its source.
        source: where it comes from.
        row: of the source: the kind of hole, of story, of suggestion.
        language: of the file.
        place: where the cursor stands.
        kind: of the failure; None where the answer is right.
        also: the other kinds that the answer is of.
        saved: characters that a right answer would have saved.
        tail: what stands before the cursor, its last characters.
        truth: what was there.
        answer: what was said; None where nothing was.
        tokens: of the truth; 0 where they were not counted.
        said: tokens of the answer.
    """

    key: str
    source: Source
    row: str
    language: str
    place: Place
    kind: str | None
    also: tuple[str, ...] = ()
    saved: int = 0
    tail: str = ""
    truth: str = ""
    answer: str | None = None
    tokens: int = 0
    said: int = 0

    @property
    def right(self) -> bool:
        """The answer is right."""
        return self.kind is None

    def to_json(self) -> dict[str, Any]:
        """For `json.dumps`."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`."""
        return cls(**{**record, "also": tuple(record["also"])})


@dataclass(frozen=True, slots=True)
class Ranked:
    """A failure and its value: the characters of a right answer, times the share of its kind in its source."""

    verdict: Verdict
    value: float


def ranked(verdicts: Sequence[Verdict]) -> tuple[Ranked, ...]:
    """All failures, the most valuable first; of equal ones in the order that they came in."""
    asked = Counter(verdict.source for verdict in verdicts)
    met = Counter((verdict.source, verdict.kind) for verdict in verdicts)
    found = [
        Ranked(verdict, verdict.saved * met[verdict.source, verdict.kind] / asked[verdict.source])
        for verdict in verdicts
        if not verdict.right
    ]
    return tuple(sorted(found, key=lambda failure: -failure.value))


def saved_characters(text: str) -> int:
    """What a person need not type: indentation comes by itself, and taking it costs a key."""
    return max(0, sum(len(line.strip()) for line in text.split("\n")) + text.strip().count("\n") - 1)
