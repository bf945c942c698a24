"""A suggestion and what became of it, as fits and evaluations of the filter read it: a line of JSON for a candidate."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from calomel.selectivity.calibrator import Subject

# What a person decided. A suggestion of less than four characters is `too_short` to tell.
OUTCOMES: Final = ("accepted", "partly", "rejected", "too_short", "superseded")


class SampleError(ValueError):
    """A file holds no samples; the message names it and the line."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One candidate.

    Attributes:
        question: names the question; the candidates of one question compete.
        kind: `fill` or `edit`.
        outcome: one of `OUTCOMES`.
        maker: who proposed it.
        language: of the document.
        group: what must not be split between a fit and its test: a package, a day of a person.
        time: seconds, of the log's clock or since 1970.
        signals: `OutcomeSignals` by name.
        filters: hard filters that drop it.
        saved_characters: that it saved whoever accepted it.
        judged_ms: milliseconds that filters and calibrator took for it.
        shown: it was on the screen; a log tells only of such what the person did about it.
        text: the maker's own text; None where texts are not kept.
        wanted: what the person wrote there instead; None where nobody knows.
        request: what the model was asked, as on the wire; None where prompts are not kept.
    """

    question: str
    kind: str
    outcome: str
    maker: str = ""
    language: str = ""
    group: str = ""
    time: float = 0.0
    signals: Mapping[str, Any] = field(default_factory=dict)
    filters: tuple[str, ...] = ()
    saved_characters: int = 0
    judged_ms: float = 0.0
    shown: bool = True
    text: str | None = None
    wanted: str | None = None
    request: Mapping[str, Any] | None = None

    @property
    def accepted(self) -> bool:
        """All of it was taken."""
        return self.outcome == "accepted"

    @property
    def decided(self) -> bool:
        """A person could have decided about it."""
        return self.outcome in {"accepted", "partly", "rejected"}

    @property
    def subject(self) -> Subject:
        """What a calibrator sees of it."""
        return Subject(self.kind, self.maker, self.language, self.signals)

    def to_line(self) -> str:
        """One line of JSON, with its end; what is None is left out."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(values, separators=(",", ":"), allow_nan=False) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Sample:
        """The inverse of `to_line`; what a later version wrote besides is left out. Raises ValueError."""
        values = json.loads(line)
        if not isinstance(values, dict) or not {"question", "kind", "outcome"} <= values.keys():
            message = "it has no question, kind and outcome"
            raise ValueError(message)
        known = {name: values[name] for name in _NAMES if name in values}
        if not isinstance(known.get("signals", {}), dict) or known["outcome"] not in OUTCOMES:
            message = "its signals are no object, or its outcome is not known"
            raise ValueError(message)
        for name in ("time", "saved_characters", "judged_ms"):
            value = known.get(name, 0)
            if not isinstance(value, int | float) or not math.isfinite(value):
                message = f"its {name} is no finite number"
                raise ValueError(message)
        return cls(**{**known, "filters": tuple(known.get("filters", ()))})


_NAMES: Final = tuple(each.name for each in fields(Sample))


def read_samples(paths: Iterable[Path]) -> Iterator[Sample]:
    """All samples of some files, in their order. Raises SampleError, OSError."""
    for path in paths:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    yield Sample.from_line(line.decode("utf-8"))
                except (ValueError, TypeError, RecursionError) as error:
                    raise SampleError(f"{path}, line {number}, is no sample: {error}") from error
