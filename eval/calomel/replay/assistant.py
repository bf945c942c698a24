"""The recorded assistant's own offers, put through Calomel's filter at their moments.

A recording says what another assistant offered, and what the person accepted. Its documents are played to the editor's
side; at each offer that side is asked, and the model behind it answers with just that offer. What is then shown, and
what of it the person accepted, is the filter's worth for a strong model. Outcomes are reported as by an editor, so that
what learns from them learns as one goes.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from calomel.infer.client import ModelClient
from calomel.infer.completer import Candidate, CompleteAnswer, CompleteRequest, ModelInfo
from calomel.prompts.parts import RegionBounds, edited
from calomel.replay.editor import Editor
from calomel.replay.events import Offered, ReplayLog
from calomel.replay.recorded import Suggested, distinct_offers
from calomel.report.result import Report, Table, Value
from calomel.suggest.edit import Suggestion
from calomel.suggest.judging import Decision
from calomel.suggest.snapshot import Trigger
from calomel.suggest.suggester import Suggester
from calomel.workspace.settings import Aggressiveness, SuggestSettings

# So large that any offer lies within.
_REGION: Final = RegionBounds(above=200, below=200, characters=60_000)
_CONTEXT: Final = 32_768
_CURVE: Final = tuple(step / 20 for step in range(1, 20))


@dataclass(frozen=True, slots=True)
class OfferRow:
    """One offer of the assistant.

    Attributes:
        time: seconds of the log's clock.
        kind: how it was asked for here.
        taken: the person accepted it, wholly or in part.
        reason: why it was not shown; empty if it was.
        probability: that it is accepted; None where it was not decided about.
        doubts: filters of doubt that it fails.
        signals: what was known of it.
    """

    time: float
    kind: str
    taken: bool
    reason: str = ""
    probability: float | None = None
    doubts: tuple[str, ...] = ()
    signals: dict[str, object] = field(default_factory=dict)


class _Assistant:
    """Answers with one offer, for the region or the hole that is asked about."""

    def __init__(self, name: str) -> None:
        self.suggested: Suggested | None = None
        self._name = name

    async def info(self) -> ModelInfo:
        return ModelInfo(
            self._name, self._name, ("fill", "edit"), _CONTEXT, _CONTEXT // 4, None, "0", _REGION, source="hosted"
        )

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        if self.suggested is None:
            return CompleteAnswer((), model=self._name, judged=False)
        edit, before = self.suggested.offer.edits[0], self.suggested.before
        if request.kind == "fill":
            return CompleteAnswer((Candidate(edit.text),), model=self._name, judged=False)
        region = request.parts.region
        text = "" if region is None else region.text
        start = before.find(text)
        if text and start <= edit.start and edit.end <= start + len(text):
            text = edited(text, [(edit.start - start, edit.end - start, edit.text)])
        return CompleteAnswer((Candidate(text),), model=self._name, judged=False)

    async def aclose(self) -> None:
        """There is nothing to close."""


async def filtered_offers(log: ReplayLog, aggressiveness: Aggressiveness = "balanced") -> list[OfferRow]:
    """Each distinct offer of a recording, in order, and what the filter does with it."""
    now = 0.0

    def clock() -> float:
        return now

    first = {id(each.offer): each for each in distinct_offers(log.events)}
    sources = Counter(event.source for event in log.events if isinstance(event, Offered))
    model = _Assistant(max(sources, key=lambda name: sources[name], default="") or "assistant")
    editor = Editor(clock)
    suggester = Suggester(
        editor.workspace,
        ModelClient.of(model, clock=clock, sleep=lambda _: asyncio.sleep(0)),
        SuggestSettings(aggressiveness=aggressiveness, debounce_seconds=0.0),
        rng=random.Random(0),  # noqa: S311 (names of suggestions)
    )
    decisions: list[Decision] = []
    suggester.filter.watch = decisions.append
    rows: list[OfferRow] = []
    for event in log.events:
        now = max(now, event.time)
        editor.send(event)
        suggested = first.get(id(event))
        document = None if suggested is None else editor.document(event.document)
        if suggested is None or document is None or suggested.after == suggested.before:
            continue
        model.suggested = suggested
        # What was answered before is no answer to this.
        suggester.withdrawn()
        decisions.clear()
        rows.append(await _row(suggester, suggested, document.uri, decisions))
    await suggester.aclose()
    return rows


async def _row(suggester: Suggester, suggested: Suggested, uri: str, decisions: Sequence[Decision]) -> OfferRow:
    offer, edit = suggested.offer, suggested.offer.edits[0]
    fills = not offer.inline_edit and edit.start == edit.end
    if fills:
        answer = await suggester.inline(uri, edit.start, Trigger.EDIT)
    else:
        answer = await suggester.next_edit(uri, None, edit.start, trigger=Trigger.EDIT)
    shown = isinstance(answer, Suggestion)
    if isinstance(answer, Suggestion):
        suggester.shown(answer.id)
    decision = decisions[0] if decisions else None
    return OfferRow(
        offer.time,
        "fill" if fills else "edit",
        suggested.accepted or suggested.partly,
        "" if shown or isinstance(answer, Suggestion) else str(answer.reason),
        None if decision is None else decision.probability,
        () if decision is None else decision.signals.doubts,
        {} if decision is None else decision.signals.known(),
    )


def assistant_report(rows: Sequence[OfferRow], aggressiveness: Aggressiveness) -> Report:
    """The figures of all offers, and the curve of what is shown against what is lost."""
    taken = [row for row in rows if row.taken]
    shown = [row for row in rows if not row.reason]
    lost = [row for row in taken if row.reason]
    flat: dict[str, Value] = {
        "aggressiveness": aggressiveness,
        "assistant_offers": len(rows),
        "assistant_shown": len(shown) / len(rows) if rows else None,
        "assistant_accepted": len(taken),
        "assistant_acceptance": sum(row.taken for row in shown) / len(shown) if shown else None,
        "assistant_lost": len(lost),
    }
    reasons = Counter(row.reason for row in rows if row.reason)
    of_taken = Counter(row.reason for row in lost)
    judged = [row for row in rows if row.probability is not None]
    curve = []
    for least in _CURVE:
        above = [row for row in judged if (row.probability or 0.0) >= least]
        accepted = sum(row.taken for row in judged) - sum(row.taken for row in above)
        curve.append((f"{least:.2f}", f"{len(above) / len(judged):.0%}" if judged else "-", str(accepted)))
    return Report(
        bench="replay recorded assistant",
        flat=flat,
        tables=(
            Table("The recorded assistant, filtered", ("", ""), [(name, _cell(flat[name])) for name in flat]),
            Table(
                "Held back, by reason",
                ("reason", "offers", "accepted by the person"),
                [(reason, str(count), str(of_taken[reason])) for reason, count in reasons.most_common()],
            ),
            Table("By threshold only", ("least probability", "shown", "accepted ones lost"), curve),
        ),
        notes=("The recorded person saw every offer: what would have been written without one is not known.",),
        details={"offers": [_plain(row) for row in rows]},
    )


def _cell(value: Value) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _plain(row: OfferRow) -> dict[str, Any]:
    return asdict(row)
