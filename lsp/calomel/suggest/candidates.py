"""Asking the model: the prompt, the limits, the deadline, and how each candidate of the answer is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from calomel.code.budget import Budget, SpentError, in_thread
from calomel.context.builder import ContextBuilder
from calomel.infer.cleaning import Hole, Refuses, clean
from calomel.infer.completer import (
    CANVAS,
    Candidate,
    CompleteAnswer,
    CompleteRequest,
    Draft,
    Kind,
    ModelInfo,
    cut_at_stop,
    with_line_feeds,
)
from calomel.infer.door import SECRET
from calomel.infer.fitting import (
    changes_only_space,
    is_half_word,
    is_inert,
    line_rest,
    splits_word,
)
from calomel.infer.seams import is_other_line
from calomel.prompts.parts import EditRegion, FileText, PromptParts, line_feeds
from calomel.selectivity.filters import THOROUGH, fired
from calomel.suggest.drafts.evidence import EditDraft
from calomel.suggest.drafts.propose import region_texts
from calomel.suggest.edit import with_line_ends_between, with_line_ends_like
from calomel.suggest.judging import (
    Answered,
    Judged,
    SuggestionFilter,
    better,
    proposal_of,
    shows,
    with_others,
)
from calomel.suggest.signals import Accord, DraftSignals, accord_of, agreement_of
from calomel.suggest.silence import SilenceReason
from calomel.suggest.snapshot import Snapshot
from calomel.workspace.edits import Planned, TextEdit, minimal_edits, plan
from calomel.workspace.workspace import Situation

T = TypeVar("T")

_WHOLE_LINE: Final = re.compile(r"\s*\S[^\r\n]*[\r\n]")


def read_fill(
    candidate: Candidate, prefix: str, suffix: str, language_id: str, refuses: Refuses, breaks: Refuses
) -> tuple[str, int, bool] | SilenceReason:
    """The answer between `prefix` and `suffix`, the whole text before and after the cursor.

    What does not fit there is cut off (`calomel.infer.cleaning`); whether it is any good is not decided here. Returns
    the text, how many characters were cut off, and whether it ends within a line because the model reached its limit.
    """
    unlikely = candidate.finish_reason == "unlikely"  # from the end of its text on
    if not candidate.text.strip() and unlikely:
        return SilenceReason.LOW_CONFIDENCE
    if not candidate.text:
        return SilenceReason.EMPTY
    whole = with_line_ends_between(candidate.text, prefix, suffix)
    hole = Hole(prefix, suffix, language_id, refuses, breaks, judged=True)
    ended = unlikely or candidate.finish_reason == "stop"
    text = clean(whole, hole, ended=ended)
    cut_off = not ended and _WHOLE_LINE.match(whole) is None
    return (text, max(0, len(whole) - len(text)), cut_off) if text else SilenceReason.REPEATS_ABOVE


def region_parts(parts: PromptParts, text: str, offset: int, start: int, end: int, cursor: int | None) -> PromptParts:
    """The parts of a prompt for `offset`, with `start:end` of `text` as the region to rewrite, all of it."""
    low, high = min(offset - len(parts.prefix), start), max(offset + len(parts.suffix), end)
    return replace(
        parts,
        prefix=text[low:start],
        suffix=text[end:high],
        region=EditRegion(text[start:end], cursor - start if cursor is not None and start <= cursor <= end else None),
        first_line=text.count("\n", 0, low),
    )


def read_rewrite(candidate: Candidate, text: str, start: int, end: int) -> tuple[Planned, ...] | SilenceReason:
    """The edits that a rewrite of `text[start:end]` amounts to; or why there are none.

    Edits of white space only are dropped if there are others.

    Args:
        candidate: its text replaces the region.
        text: of the document.
        start: where the region starts.
        end: where it ends.
    """
    old = text[start:end]
    new = with_line_ends_like(candidate.text, old, text)
    if old.endswith(("\n", "\r")) and new and not new.endswith(("\n", "\r")):
        new += "\r\n" if old.endswith("\r\n") else old[-1]
    if new == old:
        return SilenceReason.NO_CHANGE
    if not new.strip() and old.strip():
        return SilenceReason.EMPTY
    edits = minimal_edits(text, start, end, new)
    return tuple(edit for edit in edits if not changes_only_space(edit.removed, edit.text)) or edits


def _first_lines(text: str, most: int) -> str:
    """The text up to the end of its line number `most`; blank lines do not count."""
    match = re.compile(rf"(?:\s*\S[^\r\n]*){{0,{most}}}").match(text)
    return text if match is None or not match[0] else match[0]


def _edits(edits: tuple[Planned, ...] | SilenceReason) -> tuple[Planned, ...]:
    return () if isinstance(edits, SilenceReason) else edits


# Partial results by then are better than nothing; a user who asked explicitly waits longer.
DEADLINE: Final = 1.5
_PATIENT_DEADLINE: Final = 5.0
_REGION_TOKENS: Final = 512
_HOLE_TOKENS: Final = 16
# Ends what is filled into a hole of one line.
_BESIDE: Final = ("\n", "\r")
# Characters of a text that is read on the event loop, and the seconds of such a turn; others get more, in a thread.
_SHORT: Final = 16_384
_TURN: Final = 0.03
_SECONDS: Final = 1.0
# Filters that a shorter text may pass; the others are asked again about the shortened one.
_CUTTING: Final = ("repeats_below", "unbalanced")


class CandidateSource:
    """Asks one model, and decides about everything it proposes. Raises CompleterError if the model does.

    Args:
        builder: builds prompts.
        ask: asks the model.
        filter: decides which proposals are offered.
        shared: by the clients of a server, for whom the event loop must not be busy at all.
    """

    def __init__(
        self,
        builder: ContextBuilder,
        ask: Callable[[CompleteRequest], Coroutine[Any, Any, CompleteAnswer]],
        filter: SuggestionFilter,  # noqa: A002 (what it is)
        *,
        shared: bool = False,
    ) -> None:
        self.filter = filter
        self._builder = builder
        self._model = ask
        self._shared = shared

    async def fill(self, snapshot: Snapshot) -> Answered:
        """Text for the cursor; with a selected completion item, as if that were accepted already.

        Returns the best proposal that passes every check, with the others that do.
        """
        situation, text, selected = snapshot.situation, snapshot.text, snapshot.selected
        start = end = offset = situation.offset
        item = ""
        if selected is not None:
            start, end, item = selected.start, selected.end, selected.text
            text = text[:start] + item + text[end:]
            offset = start + len(item)
            situation = replace(situation, text=text, offset=offset)
        rest = text[offset : offset + 4096]
        stop = () if is_inert(line_rest(rest)) or is_other_line(text[:offset], rest) else ("\n", "\r")
        answer = await self._ask("fill", snapshot, situation, stop=stop, drafts=snapshot.continuing)

        def read(snapshot: Snapshot) -> Answered:
            return self._filled(snapshot, answer, TextEdit(start, end, item), stop)

        try:
            return await self.aside(read, snapshot)
        except SpentError:
            return SilenceReason.TIMEOUT

    def _filled(self, snapshot: Snapshot, answer: CompleteAnswer, taken: TextEdit, stop: tuple[str, ...]) -> Answered:
        """The best text of an answer, behind what is `taken` from a completion popup. Raises SpentError."""
        start, end, item = taken
        before, behind = snapshot.text[:start] + item, snapshot.text[end:]
        language, selected = snapshot.situation.language_id, snapshot.selected
        best: Answered | None = SilenceReason.SECRET if answer.reason == SECRET else None
        decided: list[Judged] = []
        for candidate in answer.candidates:

            def edits(new: str) -> tuple[Planned, ...]:
                return plan(snapshot.text, [TextEdit(start, end, item + new)])

            def refuses(new: str, names: tuple[str, ...] = _CUTTING, candidate: Candidate = candidate) -> str | None:
                return next(fired(proposal_of("fill", snapshot, Judged(candidate, edits(new))), names), None)

            within = replace(candidate, text=cut_at_stop(candidate.text, stop)[0])  # drafts end at no stop string
            filled = read_fill(within, before, behind, language, refuses, partial(refuses, names=THOROUGH))
            if isinstance(filled, SilenceReason):
                best = better(best, filled)
                continue
            new, cut, cut_off = filled
            if snapshot.lines is not None:
                short = _first_lines(new, snapshot.lines)
                new, cut, cut_off = short, cut + len(new) - len(short), cut_off and short == new
            if new.strip() or selected is None:  # the item alone is not a suggestion
                agreement = agreement_of(candidate, answer)
                proposed = Judged(candidate, edits(new), cut=cut, cut_off=cut_off, agreement=agreement)
                decision = self.filter.decide("fill", snapshot, proposed)
                best = better(best, decision)
                decided += [decision] if isinstance(decision, Judged) else []
        if isinstance(best, Judged) and shows(best) and selected is None:
            best = with_others(best, decided)
        return best or SilenceReason.EMPTY

    async def aside(self, work: Callable[[Snapshot], T], snapshot: Snapshot) -> T:
        """What `work` makes of a snapshot, within a second; of a long text not on the event loop. Raises SpentError."""
        if not self._shared and len(snapshot.text) <= _SHORT:
            with suppress(SpentError):
                return Budget(_TURN).run(work, snapshot)
        return await in_thread(_SECONDS, work, snapshot)

    async def read_ahead(self, snapshot: Snapshot) -> None:
        """Have the model encode the prompt that a snapshot for text at the cursor would have."""
        parts = self._builder.build(snapshot.situation, snapshot.context_tokens).parts
        most, limit = snapshot.context_tokens, snapshot.max_tokens
        file = FileText(snapshot.text, snapshot.situation.offset - len(parts.prefix))
        await self._model(CompleteRequest("fill", parts, max_tokens=limit, max_context=most, ahead=True, file=file))

    async def rewrite(
        self, snapshot: Snapshot, situation: Situation, region: tuple[int, int], drafts: Sequence[EditDraft] = ()
    ) -> Answered:
        """Edits of the region around the cursor of `situation`, which may differ from the snapshot's.

        Returns the likeliest proposal, drafts included, that passes every check.
        """
        proposed = region_texts(situation.text, *region, drafts)
        hopeless = CANVAS in self.filter.known["edit"].calibrator.hopeless("edit")
        own = snapshot.explicit or not hopeless
        if not own and not proposed:
            return SilenceReason.NOT_ASKED
        answer = await self._ask("edit", snapshot, situation, region=region, drafts=tuple(proposed), own=own)

        def read(snapshot: Snapshot) -> Answered:
            return self._rewritten(snapshot, situation.text, region, proposed, answer)

        try:
            return await self.aside(read, snapshot)
        except SpentError:
            return SilenceReason.TIMEOUT

    def _rewritten(
        self,
        snapshot: Snapshot,
        text: str,
        region: tuple[int, int],
        proposed: Mapping[Draft, DraftSignals],
        answer: CompleteAnswer,
    ) -> Answered:
        """The best edit of a region in an answer. Raises SpentError."""
        start, end = region
        read = [(each, read_rewrite(each, text, start, end)) for each in answer.candidates]
        # What a model makes of a region speaks for a rule or against it, if it was trained to rewrite regions.
        trained = not answer.judged and self.filter.known["edit"].source.kind in {"edits", "hosted"}
        rewrite = next((_edits(edits) for each, edits in read if trained and each.maker == CANVAS), None)
        drafted = tuple(_edits(edits) for each, edits in read if each.maker != CANVAS)
        best: Answered | None = SilenceReason.SECRET if answer.reason == SECRET else None
        for candidate, edits in read:
            if isinstance(edits, SilenceReason):
                best = better(best, edits)
                continue
            proposal = Judged(
                candidate,
                edits,
                region,
                cut_off=candidate.finish_reason != "stop",
                drafted=proposed.get(Draft(candidate.text, candidate.maker), DraftSignals()),
                agreement=agreement_of(candidate, answer, line_feeds(text[start:end])),
                accord=(
                    Accord()
                    if rewrite is None
                    else accord_of(edits, None if candidate.maker == CANVAS else rewrite, drafted)
                ),
            )
            decided = self.filter.decide("edit", snapshot, proposal)
            if candidate.maker != CANVAS and proposal.accord.backed and shows(best):
                continue  # the model's own, which came first, has all of it
            best = better(best, decided)
        return best or SilenceReason.NO_CHANGE

    async def finish(self, snapshot: Snapshot) -> Answered:
        """Text for the cursor that finishes an unfinished edit; other text is not offered."""
        before, behind = snapshot.text[: snapshot.situation.offset], snapshot.text[snapshot.situation.offset :]
        answered = await self.fill(snapshot)
        if not isinstance(answered, Judged) or answered.reason is not None:
            return answered
        at = len(before)
        new = "".join(edit.text for edit in answered.edits)
        try:
            broken = await self.aside(lambda snapshot: snapshot.errors(at, at, new), snapshot)
        except SpentError:
            broken = None
        mends = broken is not None and broken[1] < broken[0]
        if not mends and not (is_half_word(before, behind) and new[:1].isalnum()):
            return SilenceReason.NO_CHANGE
        return answered

    async def put(self, snapshot: Snapshot, draft: EditDraft) -> Answered:
        """A draft, offered if the model writes the same by itself: the only check for a model that only fills holes."""
        text, new = snapshot.situation.text, draft.text
        holed = text[: draft.start] + text[draft.end :]
        there = replace(snapshot.situation, text=holed, offset=draft.start, blocks=())
        answer = await self._ask("fill", snapshot, there, stop=_BESIDE, max_tokens=_HOLE_TOKENS)
        candidate = answer.candidates[0] if answer.candidates else Candidate("")
        if not new or not candidate.text.startswith(new) or splits_word(new, candidate.text[len(new) :]):
            return SilenceReason.NO_CHANGE
        edits = plan(snapshot.text, [TextEdit(draft.start, draft.end, draft.text)])
        try:
            return await self.aside(lambda each: self.filter.decide("edit", each, Judged(candidate, edits)), snapshot)
        except SpentError:
            return SilenceReason.TIMEOUT

    async def _ask(
        self,
        kind: Kind,
        snapshot: Snapshot,
        situation: Situation,
        *,
        region: tuple[int, int] | None = None,
        stop: tuple[str, ...] = (),
        max_tokens: int | None = None,
        drafts: tuple[Draft, ...] = (),
        own: bool = True,
    ) -> CompleteAnswer:
        explicit = snapshot.explicit
        parts = self._builder.build(situation, snapshot.context_tokens).parts
        limit = max_tokens or snapshot.max_tokens
        most, at = snapshot.context_tokens, situation.offset
        if region is not None:
            most = min(most, snapshot.region.context or most)
            with_region = region_parts(parts, situation.text, situation.offset, *region, snapshot.situation.offset)
            parts = replace(with_region, edits=(*with_region.edits, *snapshot.making))
            # A region has fewer tokens than half its bytes, and rewriting it takes about as many.
            limit = min(_REGION_TOKENS, (region[1] - region[0]) // 2 + snapshot.max_tokens)
            at = region[0]
        beside = kind == "edit" or max_tokens is not None  # text that becomes part of an edit is judged as one
        request = CompleteRequest(
            kind=kind,
            parts=parts,
            max_tokens=limit,
            min_tokens=1 if explicit and kind == "fill" else 0,
            stop=stop,
            max_context=most,
            deadline=_PATIENT_DEADLINE if explicit or kind == "edit" else DEADLINE,
            drafts=drafts,
            own=own,
            floor=None if beside else self.filter.floor(snapshot.trigger, situation.language_id),
            file=FileText(situation.text, at - len(parts.prefix)),
        )
        request = with_line_feeds(request)
        return await self._model(request)


def context_tokens(info: ModelInfo, wanted: int | None, answer_tokens: int) -> int:
    """Prompt tokens: as set, else what the model is quick with; never more than fit together with the answer."""
    return max(1, min(wanted or info.default_context, info.max_context - answer_tokens))
