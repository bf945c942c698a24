"""Every candidate that was judged while a log was played, with what the person would have done about it.

Nothing is shown meanwhile, so that no suggestion hides the next one, and the filters say all that they have to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from calomel.replay.events import Edit, Event, apply_edits
from calomel.replay.person import Moment, Verdict, judge
from calomel.selectivity.sample import Sample
from calomel.suggest.found import Found, Held
from calomel.suggest.judging import known_signals
from calomel.suggest.outcome_signals import signals_of
from calomel.suggest.wire import encode_request


@dataclass(frozen=True, slots=True)
class Asked:
    """The question that candidates belong to.

    Attributes:
        log: its name.
        group: what must not be split between a fit and its test.
        entry: of the log.
        document: its name in the log.
        language_id: of it.
        text: of it.
        cursor: offset in it.
        time: seconds of the log's clock.
        position: in the log's events, of the first that is later.
    """

    log: str
    group: str
    entry: int
    document: str
    language_id: str
    text: str
    cursor: int
    time: float
    position: int


@dataclass(slots=True)
class SampleBook:
    """Collects samples of one log.

    Attributes:
        prompts: keep the texts and what the model was asked, too.
        samples: so far.
    """

    prompts: bool = False
    samples: list[Sample] = field(default_factory=list)
    _seen: list[Found | Held] = field(default_factory=list)
    # Where the candidates of the last question led: whoever types along is offered the same again.
    _goals: dict[tuple[str, str], set[int]] = field(default_factory=dict)

    def see(self, judged: Found | Held) -> None:
        """Somebody judged a candidate."""
        self._seen.append(judged)

    def forget(self) -> None:
        """Another question begins."""
        self._seen.clear()

    def take(self, asked: Asked, kind: str, events: Sequence[Event]) -> None:
        """Judge what was seen since the question began, by what the person wrote."""
        goals: set[int] = set()
        before = self._goals.get((asked.document, kind), set())
        for found in (each.found if isinstance(each, Held) else each for each in self._seen):
            edits = tuple(Edit(edit.start, edit.end, edit.text) for edit in found.edits)
            goal = hash((apply_edits(asked.text, edits), found.maker))
            if goal in goals:
                continue
            goals.add(goal)
            if goal not in before:
                self.samples.append(self._sample(asked, kind, found, edits, events))
        self._goals[asked.document, kind] = goals
        self._seen.clear()

    def _sample(
        self, asked: Asked, kind: str, found: Found, edits: tuple[Edit, ...], events: Sequence[Event]
    ) -> Sample:
        verdict = judge(Moment(asked.document, asked.text, asked.time, asked.position), edits, events)
        keep = self.prompts and found.request is not None
        return Sample(
            question=f"{asked.log}:{asked.entry}:{kind}",
            kind=kind,
            outcome=verdict.outcome,
            maker=found.maker,
            language=asked.language_id,
            group=asked.group,
            time=asked.time,
            signals=known_signals(signals_of(found.candidate, found.edits, found.signals)),
            filters=found.signals.filters,
            saved_characters=verdict.saved_characters,
            judged_ms=round(found.judged_seconds * 1e3, 4),
            shown=False,
            text=found.candidate.text if keep else None,
            wanted=_wanted(asked, verdict) if keep and kind == "fill" else None,
            request=_request(found) if keep else None,
        )


def to_lines(samples: Iterable[Sample]) -> str:
    """As a file of samples."""
    return "".join(sample.to_line() for sample in samples)


def _request(found: Found) -> dict[str, Any] | None:
    if found.request is None:
        return None
    plain: dict[str, Any] = json.loads(encode_request(found.request))
    return plain


def _wanted(asked: Asked, verdict: Verdict) -> str | None:
    """What the person wrote at the cursor in place of a fill; None when the line became another one."""
    start = max(asked.text.rfind("\n", 0, asked.cursor), asked.text.rfind("\r", 0, asked.cursor)) + 1
    head, rest = asked.text[start : asked.cursor], asked.text[asked.cursor :].split("\n", 1)[0]
    line = None if verdict.expected is None else verdict.expected.rstrip("\r\n")
    if line is None or not line.startswith(head) or not line.endswith(rest) or len(line) < len(head) + len(rest):
        return None
    return line[len(head) : len(line) - len(rest)]
