"""The engine: a thread that serves requests with one decoder, whatever its model and how it denoises.

A request's life: `submit` checks it in the caller's thread and queues it; the scheduler admits it; the decoder advances
it one step at a time, together with other requests, until it has settled the handle.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self

import torch

from calomel.engine.cache import common_beginning
from calomel.engine.config import ModelConfig
from calomel.engine.decoder import Decoder, Work
from calomel.engine.errors import ContextTooLongError, DeadlineExceededError, EngineStoppedError, InvalidRequestError
from calomel.engine.handle import Handle
from calomel.engine.job import Job, alone
from calomel.engine.policies import LeftToRight, parse_policy
from calomel.engine.request import Request, SamplingParams
from calomel.engine.scheduler import Pace, Scheduler

# Seconds that a step of another request waits for a chunk.
_PREFILL_SECONDS: Final = 0.03


class Engine:
    """Serves requests with one decoder, from a thread of its own.

    Args:
        decoder: does the work of a step.
        max_batch: requests of one priority that are served at a time.
        prefill_seconds: chunks become shorter if one takes longer while other requests are served; None for never.

    Attributes:
        config: of the model.
        decoder: see above.
    """

    def __init__(
        self,
        decoder: Decoder[Any, Any, Any],
        *,
        max_batch: int = 8,
        prefill_seconds: float | None = _PREFILL_SECONDS,
    ) -> None:
        if max_batch < 1:
            raise InvalidRequestError(f"max_batch is {max_batch}; it must be at least 1")
        if prefill_seconds is not None and not prefill_seconds > 0:
            raise InvalidRequestError(f"prefill_seconds is {prefill_seconds}; it must be above 0")
        self.config = decoder.config
        self.decoder = decoder
        self._pace = Pace(most=decoder.prefill_chunk, unit=decoder.diffusion.block, seconds=prefill_seconds)
        self._scheduler = Scheduler(max_batch=max_batch, pace=self._pace)
        self._failure: BaseException | None = None
        # The context of the last request: the next one is usually the same plus a letter.
        self._checked: tuple[int, ...] = ()
        self._thread = threading.Thread(target=self._serve, name="calomel-engine", daemon=True)
        self._thread.start()

    def submit(self, request: Request) -> Handle:
        """Queue `request` and return at once.

        Raises:
            InvalidRequestError: a field is wrong; the subclass and the message say which.
            EngineStoppedError: the engine was closed, or its thread failed.
        """
        (handle,) = self.submit_all((request,))
        return handle

    def submit_all(self, requests: Sequence[Request]) -> tuple[Handle, ...]:
        """Queue `requests` together, so that none of them gets a forward before the others.

        Raises:
            InvalidRequestError: a field of one of them is wrong; nothing is queued.
            EngineStoppedError: the engine was closed, or its thread failed.
        """
        for request in requests:
            check(request, self.config, self._checked)
            self._checked = request.context
        handles = tuple(Handle(on_cancel=self._scheduler.wake) for _ in requests)
        pairs = zip(requests, handles, strict=True)
        if not self._scheduler.submit([self.decoder.job(request, handle) for request, handle in pairs]):
            raise self._stopped()
        return handles

    @property
    def occupancy(self) -> tuple[int, int]:
        """How many requests are in the batch, and how many wait for a place in it."""
        return self._scheduler.occupancy

    @property
    def positions(self) -> int:
        """How many tokens context and answer may have together: the model's limit, or what its cache has room for."""
        return min(self.config.max_position_embeddings, self.decoder.cache.tokens - self.decoder.scratch)

    @property
    def work(self) -> Work:
        """What was done so far."""
        return self.decoder.work

    def close(self) -> None:
        """Stop serving; unfinished requests raise EngineStoppedError. May be called twice."""
        self._scheduler.close()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _serve(self) -> None:
        try:
            with torch.inference_mode():
                while self._scheduler.wait():
                    self._step()
        except BaseException as error:  # noqa: BLE001  (every waiting caller must get it)
            self._failure = error
        finally:
            self._scheduler.stop(self._stopped())

    def _step(self) -> None:
        """One step: answer jobs past their deadline, remove and admit jobs, and step those picked."""
        scheduler, decoder = self._scheduler, self.decoder
        for job in scheduler.expired(decoder.clock()):
            with alone(job.handle):
                self._answer_in_time(job)
        self._let_go()
        while (admitted := scheduler.admit(decoder.fits)) is not None:
            with alone(admitted.handle):
                decoder.begin(admitted)
        picked, began = scheduler.pick(), decoder.clock()
        rows = sum(job.prefill_rows for job in picked)
        decoder.step(picked)
        self._pace.took(rows, decoder.clock() - began)
        self._let_go()

    def _answer_in_time(self, job: Job[Any, Any, Any]) -> None:
        """The deadline has passed: what is known without a gap is the answer."""
        if not job.forwards:
            raise DeadlineExceededError(
                "the deadline passed before the first step; allow more time or a shorter context"
            )
        self.decoder.take_known(job)
        self.decoder.finish(job, "stop" if job.end_log_prob is not None else "deadline")

    def _let_go(self) -> None:
        for job in self._scheduler.leaving():
            self.decoder.end(job)

    def _stopped(self) -> EngineStoppedError:
        if self._failure is None:
            return EngineStoppedError("the engine has closed")
        error = EngineStoppedError(f"the engine's thread failed: {self._failure!r}")
        error.__cause__ = self._failure
        return error


def check(request: Request, config: ModelConfig, checked: tuple[int, ...] = ()) -> None:
    """Raise the InvalidRequestError that names the first wrong field of `request`.

    `checked` is a context that was checked before: the common beginning of both is not checked again.
    """
    _check_context(request, config, checked)
    if request.suffix and not config.diffusion.reads_suffix:
        raise InvalidRequestError("suffix is set, but this checkpoint cannot read text after the answer")
    _check_canvas(request, config)
    _check_sampling(request.sampling)
    # A model that reads in both directions has policies of its own; its decoder checks them.
    causal = not config.diffusion.reads_suffix and isinstance(parse_policy(request.policy), LeftToRight)
    if request.given is not None and request.constraint is not None:
        raise InvalidRequestError("given and constraint are both set: remove one of them")
    if {config.diffusion.mask_token_id, config.diffusion.end_token_id} & set(request.given or ()):
        raise InvalidRequestError("given has the mask or the end token; leave them out")
    if (causal or request.given is not None) and not config.diffusion.verifiable:
        asked = f"policy {request.policy!r}" if request.given is None else "the probability of given tokens"
        raise InvalidRequestError(f"{asked} needs a checkpoint trained causally on its context; this one was not")
    no_mask = config.diffusion.verifiable and config.diffusion.mask_token_id < 0
    if no_mask and not causal and request.given is None:
        raise InvalidRequestError(
            f"policy {request.policy!r} needs a mask token, and this checkpoint has none: it writes from left to right "
            "(policy left_to_right)"
        )


def _check_context(request: Request, config: ModelConfig, checked: tuple[int, ...]) -> None:
    size = len(request.context)
    if not size:
        raise InvalidRequestError("context is empty; give at least one token")
    if request.max_new_tokens < 1:
        raise InvalidRequestError(f"max_new_tokens is {request.max_new_tokens}; it must be at least 1")
    if not 0 <= request.min_new_tokens <= request.max_new_tokens:
        raise InvalidRequestError(
            f"min_new_tokens is {request.min_new_tokens}; it must be between 0 and max_new_tokens "
            f"({request.max_new_tokens})"
        )
    name, room = "max_new_tokens", request.max_new_tokens
    if request.given is not None:
        name, room = "given and the end token", len(request.given) + 1
    known = size + len(request.suffix)
    if known + room > config.max_position_embeddings:
        around = f"context and suffix ({known})" if request.suffix else f"context ({size})"
        raise ContextTooLongError(
            f"{around} plus {name} ({room}) exceed the model's {config.max_position_embeddings} positions"
        )
    fresh = request.context[common_beginning(checked, request.context) :]
    named = {"context": fresh, "suffix": request.suffix, "guess": request.guess}
    for name, ids in {**named, "given": request.given or ()}.items():
        outer = (min(ids), max(ids)) if ids else ()
        for wrong in (token for token in outer if not 0 <= token < config.vocab_size):
            raise InvalidRequestError(f"{name} has token id {wrong}; the vocabulary has {config.vocab_size} entries")
    if request.reuse is not None and not 0 <= request.reuse <= size:
        raise InvalidRequestError(f"reuse is {request.reuse}; it must be between 0 and the context's {size} tokens")
    if request.deadline is not None and math.isnan(request.deadline):
        raise InvalidRequestError("deadline is not a number")


def _check_canvas(request: Request, config: ModelConfig) -> None:
    longest = config.diffusion.max_canvas
    if not 1 <= request.canvas_length <= longest:
        raise InvalidRequestError(f"canvas_length is {request.canvas_length}; it must be between 1 and {longest}")
    if request.max_steps < 1:
        raise InvalidRequestError(f"max_steps is {request.max_steps}; it must be at least 1")


def _check_sampling(sampling: SamplingParams) -> None:
    rules = (
        ("temperature", sampling.temperature, 0.0 <= sampling.temperature < math.inf, "a number of at least 0"),
        ("top_p", sampling.top_p, 0.0 < sampling.top_p <= 1.0, "above 0 and at most 1"),
        ("top_k", sampling.top_k, sampling.top_k == -1 or sampling.top_k >= 1, "-1 or at least 1"),
        ("frequency_penalty", sampling.frequency_penalty, math.isfinite(sampling.frequency_penalty), "finite"),
        ("presence_penalty", sampling.presence_penalty, math.isfinite(sampling.presence_penalty), "finite"),
        ("repetition_penalty", sampling.repetition_penalty, 0.0 < sampling.repetition_penalty < math.inf, "above 0"),
    )
    for name, value, fits, wanted in rules:
        if not fits:
            raise InvalidRequestError(f"{name} is {value}; it must be {wanted}")
