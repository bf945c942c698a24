"""The engine: a model and a thread that serves requests.

A request's life: `submit` checks it in the caller's thread and queues it; the scheduler admits it; what the prefix
cache has of its context is copied into its buffer, the rest is encoded in chunks and its pages are kept; canvases are
denoised (or drafted and verified) step by step, side by side with other requests; the handle is settled.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import torch

from calomel.engine.cache import PrefixCache
from calomel.engine.checkpoint import load_checkpoint
from calomel.engine.config import ModelConfig
from calomel.engine.denoise import Denoiser, StepReport, run
from calomel.engine.errors import EngineStoppedError, InvalidRequestError
from calomel.engine.handle import Handle
from calomel.engine.job import Clock, Job
from calomel.engine.length import LengthBias
from calomel.engine.precision import native_bfloat16
from calomel.engine.request import Priority, Request, check
from calomel.engine.scheduler import Scheduler
from calomel.engine.transformer import Transformer

# A keystroke adds a few tokens to the cached prefix, and the near suffix follows it.
_WITHIN_FIRST_STEP: Final = 64


class Engine:
    """Serves requests on one model, from a thread of its own.

    Args:
        model: the decoder, on its device.
        cache_tokens: context tokens that the prefix cache has room for.
        spare_tokens: context tokens that stay laid out as the last requests had them, so that the next keystroke of as
            many contexts copies nothing; None for a quarter of the cache.
        page_size: tokens of a cache page.
        max_batch: requests of one priority that are served at a time.
        prefill_chunk: context tokens encoded per step at most; the longest time that a cancellation waits.
        device: where the model is moved to.
        threads: of a large CPU forward; None for PyTorch's own choice. A small one runs on one thread.
        length_bias: canvas length to the confidence that the length probe subtracts for it.
        clock: seconds that deadlines are compared with.
        observe: called on the engine's thread behind every forward.
    """

    def __init__(  # noqa: PLR0913  (independent options, each with its default)
        self,
        model: Transformer,
        *,
        cache_tokens: int = 65536,
        spare_tokens: int | None = None,
        page_size: int = 16,
        max_batch: int = 8,
        prefill_chunk: int = 512,
        device: torch.device | str = "cpu",
        threads: int | None = None,
        length_bias: LengthBias | None = None,
        clock: Clock = time.monotonic,
        observe: Callable[[StepReport], None] | None = None,
    ) -> None:
        for name, value in (("page_size", page_size), ("max_batch", max_batch), ("prefill_chunk", prefill_chunk)):
            if value < 1:
                raise InvalidRequestError(f"{name} is {value}; it must be at least 1")
        if cache_tokens < page_size:
            raise InvalidRequestError(f"cache_tokens is {cache_tokens}; it must be at least a page of {page_size}")
        if threads is not None and threads < 1:
            raise InvalidRequestError(f"threads is {threads}; it must be at least 1")
        model = model.to(device).eval()
        weight = model.embed_tokens.weight
        self.config: ModelConfig = model.config
        cache = PrefixCache(
            model.config, pages=cache_tokens // page_size, page_size=page_size, dtype=weight.dtype, device=weight.device
        )
        self.cache = cache
        self._scheduler = Scheduler(max_batch=max_batch, prefill_chunk=prefill_chunk)
        self._denoiser = Denoiser(
            model,
            cache,
            slots=max_batch * len(Priority),
            spare_tokens=cache_tokens // 4 if spare_tokens is None else spare_tokens,
            threads=threads,
            within_first_step=min(_WITHIN_FIRST_STEP, prefill_chunk),
            within_forward=prefill_chunk,
            length_bias=length_bias,
            clock=clock,
            observe=observe,
        )
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name="calomel-engine", daemon=True)
        self._thread.start()

    @classmethod
    def from_checkpoint(
        cls, folder: Path, *, device: str = "cpu", dtype: torch.dtype | None = None, **options: object
    ) -> Engine:
        """Load the checkpoint in `folder` and serve it; `options` are the constructor's.

        Args:
            folder: with `config.json` and `model.safetensors`.
            device: where it runs.
            dtype: of weights and cache; None for bfloat16 where `device` computes in it, else float32.
            **options: of the constructor.

        Raises:
            CheckpointError: the checkpoint is incomplete or damaged.
        """
        model = load_checkpoint(folder, dtype=native_dtype(device) if dtype is None else dtype, device=device)
        return cls(model, device=device, **options)  # type: ignore[arg-type]

    def submit(self, request: Request) -> Handle:
        """Queue `request` and return at once.

        Raises:
            InvalidRequestError: a field is wrong; the subclass and the message tell which.
            EngineStoppedError: the engine was closed, or its thread failed.
        """
        (handle,) = self.submit_all((request,))
        return handle

    def submit_all(self, requests: Sequence[Request]) -> tuple[Handle, ...]:
        """Queue `requests` at the same moment, so that none of them has a forward of its own first.

        Raises:
            InvalidRequestError: a field of one of them is wrong; nothing is queued.
            EngineStoppedError: the engine was closed, or its thread failed.
        """
        for request in requests:
            check(request, self.config)
        handles = tuple(Handle(on_cancel=self._scheduler.wake) for _ in requests)
        diffusion = self.config.diffusion
        pairs = zip(requests, handles, strict=True)
        if not self._scheduler.submit([Job(request, handle, diffusion) for request, handle in pairs]):
            raise self._stopped()
        return handles

    @property
    def occupancy(self) -> tuple[int, int]:
        """How many requests are in the batch, and how many wait for a place in it."""
        return self._scheduler.occupancy

    def close(self) -> None:
        """Stop serving; requests that are not done raise EngineStoppedError. May be called twice."""
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
            run(self._scheduler, self._denoiser)
        except BaseException as error:  # noqa: BLE001  (whoever waits must hear of it, whatever it is)
            self._failure = error
        finally:
            self._scheduler.stop(self._stopped())

    def _stopped(self) -> EngineStoppedError:
        if self._failure is None:
            return EngineStoppedError("the engine was closed")
        error = EngineStoppedError(f"the engine's thread failed: {self._failure!r}")
        error.__cause__ = self._failure
        return error


def native_dtype(device: str) -> torch.dtype:
    """The type that `device` computes fastest in: bfloat16 where it is native, else float32."""
    return torch.bfloat16 if torch.device(device).type == "cuda" or native_bfloat16() else torch.float32
