"""Asking the model: the prompt, the bounds, the deadline, and what is kept of the answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from calomel.prompts.parts import Hunk
from calomel.prompts.region import RegionBounds, region_around
from calomel.selectivity.edit_calibrator import EditCalibrator, EditSignals
from calomel.selectivity.proposal import Recent
from calomel.suggest.belief import belief
from calomel.suggest.checks.just_deleted import brings_back, takes_back
from calomel.suggest.checks.line_rest import is_inert, line_rest
from calomel.suggest.checks.masked import touches_masked
from calomel.suggest.completer import (
    CANVAS,
    Candidate,
    CompleteAnswer,
    Completer,
    CompleteRequest,
    CompleterError,
    Draft,
    Kind,
    ModelInfo,
)
from calomel.suggest.diff import row_of, rows_between
from calomel.suggest.drafts.draft import EditDraft
from calomel.suggest.drafts.region_texts import region_texts
from calomel.suggest.fill_answer import read_fill
from calomel.suggest.flight import ended
from calomel.suggest.gate import Gate, Hide, Signals
from calomel.suggest.locations import Location
from calomel.suggest.needs import Builder
from calomel.suggest.planned import Planned, edits_of, plan
from calomel.suggest.rewrite import read_rewrite, region_parts
from calomel.suggest.silence import SilenceReason
from calomel.suggest.suggestion import TextEdit
from calomel.suggest.trigger import Selected, Trigger
from calomel.workspace.situation import Situation

LOG: Final = logging.getLogger(__name__)

# What is known by then is better than nothing; a user who asked waits longer.
_DEADLINE: Final = 1.5
_PATIENT_DEADLINE: Final = 5.0
# For the way there and back; then the server is given up.
_GRACE: Final = 1.0
_REGION_TOKENS: Final = 512
_NAME_TOKENS: Final = 16


@dataclass(frozen=True, slots=True)
class Found:
    """Something worth offering, in offsets of the question's text."""

    edits: tuple[Planned, ...]
    candidate: Candidate
    probability: float
    signals: Signals
    truncated: bool = False
    request: CompleteRequest | None = field(default=None, repr=False)

    @property
    def maker(self) -> str:
        """Who proposed it."""
        return self.candidate.maker


@dataclass(frozen=True, slots=True)
class Question:
    """What a question is about, as it was when it was asked.

    Attributes:
        text: of the document, unmasked; never leaves the editor's side.
        situation: the same masked, with everything else a prompt is made of.
        trigger: what made the editor ask.
        recent: what the user did lately.
        since_edit: seconds since the last change.
        decisions: how many of the last suggestions were accepted, and how many rejected.
        max_tokens: of an answer.
        context_tokens: of a prompt.
        mask: masks secrets in a text.
        region: how much the model may rewrite at once.
        making: the edit that is being made, masked. It has not settled, but it says most about the next one.
    """

    text: str
    situation: Situation
    trigger: Trigger
    recent: Sequence[Recent]
    since_edit: float | None
    decisions: tuple[int, int]
    max_tokens: int
    context_tokens: int
    mask: Callable[[str], str]
    region: RegionBounds = field(default_factory=RegionBounds)
    making: tuple[Hunk, ...] = ()


class Asker:
    """Puts questions to one model. Raises CompleterError where the model does."""

    def __init__(
        self, builder: Builder, completer: Completer, gate: Gate, sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        self.gate = gate
        self.model_id = ""
        self._calibrator = EditCalibrator()
        self._calibrated: str | None = None
        self._builder = builder
        self._completer = completer
        self._sleep = sleep

    async def fill(
        self, question: Question, selected: Selected | None = None, drafts: tuple[Draft, ...] = ()
    ) -> Found | SilenceReason:
        """Text for the cursor; with a selected completion item, as if it had been accepted already."""
        situation = question.situation
        text, offset = situation.text, situation.offset
        original = question.text
        if selected is not None:
            item = question.mask(selected.text)
            if item != selected.text:
                return SilenceReason.SECRET
            text = text[: selected.start] + item + text[selected.end :]
            original = original[: selected.start] + item + original[selected.end :]
            offset = selected.start + len(item)
            situation = replace(situation, text=text, offset=offset)
        one_line = not is_inert(line_rest(original[offset : offset + 4096]))
        stop = ("\n", "\r") if one_line else ()
        answer = await self._ask("fill", question, situation, stop=stop, drafts=drafts)
        if not answer.candidates:
            return SilenceReason.EMPTY
        candidate = answer.candidates[0]
        filled = read_fill(candidate, original[:offset], original[offset:])
        if isinstance(filled, SilenceReason):
            return filled
        if _is_secret(original, offset, filled.text, question.mask):
            return SilenceReason.SECRET
        edit = TextEdit(situation.offset, situation.offset, filled.text)
        if selected is not None:
            edit = TextEdit(selected.start, selected.end, selected.text + filled.text)
        edits = plan(question.text, [edit])
        return self._judge("fill", question, edits, candidate, cut=filled.cut, truncated=filled.truncated)

    def know(self, info: ModelInfo) -> None:
        """Take over how far the model's own numbers are to be trusted, which stands beside its weights."""
        if info.tokenizer != self._calibrated:
            self._calibrated = info.tokenizer
            self._calibrator = EditCalibrator() if info.tokenizer is None else _calibrator(Path(info.tokenizer).parent)

    async def rewrite(
        self, question: Question, situation: Situation, *, extended: bool, drafts: Sequence[EditDraft] = ()
    ) -> Found | SilenceReason:
        """Edits of the region around the cursor of `situation`, which may be elsewhere than the question's.

        Of all that the makers propose, drafts among them, the likeliest one that passes every check.
        """
        bounds = question.region.extended() if extended else question.region
        start, end = region_around(question.text, situation.offset, bounds)
        proposed = region_texts(situation.text, start, end, drafts)
        answer = await self._ask(
            "edit", question, situation, region=(start, end), drafts=tuple(each.draft for each in proposed)
        )
        support = {(each.draft.text, each.draft.maker): each.support for each in proposed}
        best: Found | None = None
        reason: SilenceReason | None = None
        for candidate in answer.candidates:
            found = self._read(
                question, situation, (start, end), candidate, support.get((candidate.text, candidate.maker), 0)
            )
            if isinstance(found, SilenceReason):
                reason = reason or found
            elif best is None or found.probability > best.probability:
                best = found
        return best or reason or SilenceReason.NO_CHANGE

    def _read(
        self, question: Question, situation: Situation, region: tuple[int, int], candidate: Candidate, support: int
    ) -> Found | SilenceReason:
        """What one candidate comes to."""
        edits = read_rewrite(candidate, situation.text, *region)
        if isinstance(edits, SilenceReason):
            return edits
        if any(_is_secret(question.text, edit.start, edit.text, question.mask) for edit in edits):
            return SilenceReason.SECRET
        return self._judge("edit", question, edits, candidate, support=support)

    async def continue_rename(self, question: Question, place: Location) -> Found | SilenceReason:
        """The last rename, at another place: offered if the model puts the new name there by itself.

        This is what a model that only fills in can do for a next edit.
        """
        masked = question.situation.text
        situation = replace(
            question.situation, text=masked[: place.start] + masked[place.end :], offset=place.start, blocks=()
        )
        answer = await self._ask("fill", question, situation, max_tokens=_NAME_TOKENS)
        new = place.replacement or ""
        candidate = answer.candidates[0] if answer.candidates else None
        if candidate is None or not new or not candidate.text.startswith(new):
            return SilenceReason.NO_CHANGE
        following = candidate.text[len(new) : len(new) + 1]
        if following.isalnum() or following == "_":
            return SilenceReason.NO_CHANGE
        edits = plan(question.text, [TextEdit(place.start, place.end, new)])
        return self._judge("edit", question, edits, candidate)

    async def _ask(
        self,
        kind: Kind,
        question: Question,
        situation: Situation,
        *,
        region: tuple[int, int] | None = None,
        stop: tuple[str, ...] = (),
        max_tokens: int | None = None,
        drafts: tuple[Draft, ...] = (),
    ) -> CompleteAnswer:
        explicit = question.trigger is Trigger.EXPLICIT
        parts = self._builder.build(situation, question.context_tokens).parts
        limit = max_tokens or question.max_tokens
        most = question.context_tokens
        if region is not None:
            most = min(most, question.region.context or most)
            with_region = region_parts(parts, situation.text, situation.offset, *region, question.situation.offset)
            if with_region is None:
                return CompleteAnswer(())
            parts = replace(with_region, edits=(*with_region.edits, *question.making))
            # Half of the region's bytes are more tokens than it has; rewriting it takes about as many.
            limit = min(_REGION_TOKENS, (region[1] - region[0]) // 2 + question.max_tokens)
        deadline = _PATIENT_DEADLINE if explicit or kind == "edit" else _DEADLINE
        request = CompleteRequest(
            kind=kind,
            parts=parts,
            max_tokens=limit,
            min_tokens=1 if explicit and kind == "fill" else 0,
            stop=stop,
            max_context=most,
            deadline=deadline,
            drafts=drafts,
        )
        answering = asyncio.ensure_future(self._completer.complete(request))
        timer = asyncio.ensure_future(self._sleep(deadline + _GRACE))
        try:
            await asyncio.wait({answering, timer}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                raise CompleterError("timeout", f"The model gave no answer within {deadline + _GRACE:.1f} s.")
            answer = answering.result()
        finally:
            await ended(answering)
            await ended(timer)
        self.model_id = answer.model or self.model_id
        return answer

    def _judge(
        self,
        kind: Kind,
        question: Question,
        edits: tuple[Planned, ...],
        candidate: Candidate,
        *,
        cut: int = 0,
        truncated: bool = False,
        support: int = 0,
    ) -> Found | SilenceReason:
        if not edits:
            return SilenceReason.NO_CHANGE
        plain = edits_of(edits)
        if not all(edit.fits(question.text) for edit in edits) or touches_masked(
            plain, question.text, question.situation.text
        ):
            return SilenceReason.SECRET
        if question.trigger is not Trigger.EXPLICIT and (
            brings_back(edits, question.recent) or (kind == "edit" and takes_back(edits, question.recent))
        ):
            return SilenceReason.JUST_DELETED
        accepted, rejected = question.decisions
        row = row_of(question.text, question.situation.offset)
        distance = min(
            rows_between((row_of(question.text, edit.start), row_of(question.text, edit.end)), row) for edit in edits
        )
        signals = Signals(
            kind=kind,
            trigger=question.trigger,
            edits=plain,
            language_id=question.situation.language_id,
            distance=distance,
            since_edit=question.since_edit,
            accepted=accepted,
            rejected=rejected,
            cut=cut,
            support=support,
            likely=self._likely(candidate, edits, distance, support) if kind == "edit" else _believed(candidate),
        )
        verdict = self.gate.decide(candidate, signals)
        if isinstance(verdict, Hide):
            return verdict.reason
        return Found(edits, candidate, verdict.probability, signals, truncated)

    def _likely(self, candidate: Candidate, edits: Sequence[Planned], distance: int, support: int) -> float | None:
        """How likely an edit is right, by the likelihood ratio of edit and keep; None where it was not judged."""
        if candidate.log_prob is None or candidate.keep_log_prob is None:
            return None
        return self._calibrator.probability(
            EditSignals(
                log_prob=candidate.log_prob,
                keep_log_prob=candidate.keep_log_prob,
                tokens=max(1, len(candidate.log_probs)),
                maker=candidate.maker,
                support=support,
                rows=distance,
                inserted=sum(len(edit.text) for edit in edits),
                removed=sum(len(edit.removed) for edit in edits),
            )
        )


def _believed(candidate: Candidate) -> float | None:
    """How likely a draft for a hole is right; None for the model's own text, whose signals say so themselves."""
    return None if candidate.maker == CANVAS or candidate.log_prob is None else belief(candidate.log_prob)


def _calibrator(folder: Path) -> EditCalibrator:
    try:
        return EditCalibrator.from_folder(folder)
    except ValueError as error:
        LOG.warning("%s", error)
        return EditCalibrator()


def context_tokens(info: ModelInfo, wanted: int | None, answer_tokens: int) -> int:
    """Tokens of prompt: what the settings say, or what the model is quick with; never more than fit with the answer."""
    return max(1, min(wanted or info.default_context, info.max_context - answer_tokens))


def _is_secret(text: str, offset: int, inserted: str, mask: Callable[[str], str]) -> bool:
    """Whether what is inserted at `offset` would be masked, seen together with the line before it."""
    line_start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    before = text[max(line_start, offset - 400) : offset]
    return mask(before + inserted)[len(before) :] != inserted
