"""What was said at one moment of a story, by everybody who was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from calomel.selectivity.sample import Sample

CALOMEL: Final = "calomel"
REPEAT: Final = "repeat"
LEFT_TO_RIGHT: Final = "left_to_right"
DRAFTS: Final = "drafts"
# Beside Calomel itself.
BASELINES: Final = (REPEAT, LEFT_TO_RIGHT, DRAFTS)


@dataclass(frozen=True, slots=True)
class Said:
    """One answer.

    Attributes:
        shown: there was a suggestion.
        right: the right one, or none where none was right.
        maker: of the suggestion.
        reason: of silence.
        probability: that the gate gave, of all it saw the highest; None where it saw nothing.
        milliseconds: until the answer; None where nobody was asked.
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
        story: its story's id, which intervals are resampled by.
        path: of the file.
        kind: of the story.
        language: of the file.
        silent: silence is right.
        half: the last change was interrupted.
        said: by contender.
        proposed: by maker, whether each of its proposals was right, its best one first.
        samples: of each candidate that the gate saw.
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

    def to_json(self) -> dict[str, Any]:
        """By name."""
        return {**asdict(replace(self, samples=())), "samples": [sample.to_line() for sample in self.samples]}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Row:
        """The inverse of `to_json`."""
        return cls(
            **{
                **record,
                "said": {name: Said(**said) for name, said in record["said"].items()},
                "proposed": {maker: tuple(right) for maker, right in record["proposed"].items()},
                "samples": tuple(Sample.from_line(line) for line in record["samples"]),
            }
        )
