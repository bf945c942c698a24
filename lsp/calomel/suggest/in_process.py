"""An engine of this process behind the same face as one on the other side of the wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from calomel.suggest.completer import (
    Candidate,
    CompleteAnswer,
    CompleteRequest,
    CompleterError,
    Draft,
    ModelInfo,
    Timings,
)
from calomel.suggest.drafted import Drafted, expected_characters
from calomel.suggest.fields import FieldError
from calomel.suggest.wire import check_request

if TYPE_CHECKING:
    from calomel.engine import Work
    from calomel.suggest.fill import Fill, FillRequest

NOT_TRAINED_FOR_EDITS = "not_trained_for_edits"

# Codes of `calomel.engine.errors`, by name: that package imports torch.
_OVERLOADED = frozenset({"cache_full"})
_REFUSED = frozenset(
    {
        "context_length_exceeded",
        "empty_context",
        "invalid_canvas",
        "invalid_request",
        "invalid_sampling",
        "policy_unavailable",
        "token_out_of_range",
        "unknown_policy",
    }
)


class Fills(Protocol):
    """What a route needs of `calomel.suggest.filler.Filler`."""

    async def afill(self, request: FillRequest) -> Fill:
        """Fill the hole; cancelling the awaiting task cancels the work."""

    async def adraft(self, request: FillRequest, drafts: Sequence[Draft]) -> tuple[Fill, Drafted]:
        """Fill the hole and judge drafts for it; cancelling the awaiting task cancels the work."""

    async def arewrite(self, request: CompleteRequest) -> CompleteAnswer:
        """What a region could become; cancelling the awaiting task cancels the work."""


class OwnedFills(Fills, Protocol):
    """A Filler that is closed with its owner."""

    def close(self) -> None:
        """Stop the engine."""


async def answer(filler: Fills, info: ModelInfo, request: CompleteRequest) -> CompleteAnswer:
    """What `filler`, whose model is `info`, says to `request`.

    An answer without text is a candidate too: its signals tell how sure the model is that nothing belongs there.

    Raises:
        EngineError: the engine refused or failed.
    """
    if request.kind not in info.kinds:
        return CompleteAnswer((), reason=NOT_TRAINED_FOR_EDITS, model=info.id)
    if request.kind == "edit":
        return replace(await filler.arewrite(request), model=info.id)
    judged = True
    if request.drafts:
        fill, drafted = await filler.adraft(_fill_request(request), request.drafts)
        candidates = _with_drafts(fill, drafted)
        judged = not drafted.unjudged
    else:
        fill = await filler.afill(_fill_request(request))
        candidates = (_candidate(fill),)
    return CompleteAnswer(
        candidates,
        context_tokens=fill.prompt_tokens,
        cached_tokens=fill.cached_tokens,
        model=info.id,
        timings=_timings(fill),
        judged=judged,
    )


@dataclass(slots=True)
class EngineCompleter:
    """A `Completer` on an engine of this process, for replay and tests.

    Attributes:
        filler: closed with this object.
        model: what it says of itself.
    """

    filler: OwnedFills
    model: ModelInfo

    @property
    def work(self) -> Work | None:
        """What the engine has done so far; None where it does not count."""
        found: Work | None = getattr(getattr(self.filler, "engine", None), "work", None)
        return found

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Answer one question. Raises CompleterError."""
        try:
            check_request(request)
            return await answer(self.filler, self.model, request)
        except FieldError as error:
            raise CompleterError("refused", str(error)) from None
        except Exception as error:
            code = getattr(error, "code", None)
            if not isinstance(code, str):
                raise
            raise CompleterError(_completer_code(code), f"the engine says: {code}") from error

    async def info(self) -> ModelInfo:
        """What the model can do."""
        return self.model

    async def aclose(self) -> None:
        """Stop the engine."""
        self.filler.close()


def open_completer(folder: Path | None = None, device: str = "cpu", threads: int | None = None) -> EngineCompleter:
    """Load the checkpoint folder (None: the shipped one) and answer from it; blocks for seconds.

    Raises what `calomel.suggest.filler.open_filler` raises.
    """
    from calomel.suggest.model_info import describe
    from calomel.suggest.opening import open_filler

    filler = open_filler(folder, device, threads)
    return EngineCompleter(filler, describe(folder))


def _fill_request(request: CompleteRequest) -> FillRequest:
    from calomel.engine import Priority  # imports torch, which came with the model
    from calomel.suggest.fill import FillRequest

    return FillRequest(
        prefix=request.parts.prefix,
        suffix=request.parts.suffix,
        path=request.parts.path,
        parts=request.parts,
        max_tokens=request.max_tokens,
        min_tokens=request.min_tokens,
        stop=request.stop,
        max_context=request.max_context,
        priority=Priority.BACKGROUND if request.background else Priority.INTERACTIVE,
        deadline=request.deadline,
        recall=False,  # an editor recalls from all that is open, and sends drafts
    )


def _candidate(fill: Fill) -> Candidate:
    result = fill.result
    # Of an answer that a stop string cut, only the tokens that are left.
    kept = min(fill.completion_tokens, len(result.ids))
    cut = kept < len(result.ids)
    return Candidate(
        text=fill.text,
        log_probs=result.log_probs[:kept],
        entropies=result.entropies[:kept],
        end_log_prob=None if cut else result.end_log_prob,
        finish_reason=fill.finish_reason,
        steps=result.steps,
        length_scores=result.length_scores,
    )


def _with_drafts(fill: Fill, drafted: Drafted) -> tuple[Candidate, ...]:
    """The model's own text and what is left of the drafts, most expected characters first."""
    own = replace(_candidate(fill), log_prob=drafted.log_prob, keep_log_prob=drafted.keep_log_prob)
    probabilities = own.log_probs if drafted.log_prob is None else (drafted.log_prob,)
    ranked = [(expected_characters(own.text, probabilities), own)]
    for draft in drafted.drafts:
        candidate = Candidate(
            text=draft.text,
            log_probs=draft.log_probs,
            end_log_prob=draft.end_log_prob,
            maker=draft.maker,
            log_prob=draft.log_prob,
            keep_log_prob=drafted.keep_log_prob,
        )
        ranked.append((draft.expected, candidate))
    last = (Candidate(text=draft.text, maker=draft.maker) for draft in drafted.unjudged if draft.text.strip())
    return (*(candidate for _, candidate in sorted(ranked, key=lambda pair: pair[0], reverse=True)), *last)


def _timings(fill: Fill) -> Timings:
    worked = fill.result.prefill_seconds + fill.result.denoise_seconds
    return Timings(queued=max(0.0, fill.seconds - worked), total=fill.seconds)


def _completer_code(engine_code: str) -> str:
    if engine_code in _REFUSED:
        return "refused"
    if engine_code in _OVERLOADED:
        return "overloaded"
    return "timeout" if engine_code == "deadline_exceeded" else "failed"
