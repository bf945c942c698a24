"""The engine of our own decoder: contexts in an exact prefix cache, answers on canvases behind it.

What the prefix cache has of a request's context is copied into its buffer, the rest is encoded in chunks and its pages
are kept; canvases are denoised (or drafted and verified) step by step, side by side with other requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import torch

from calomel.engine.cache import PrefixCache
from calomel.engine.checkpoint import load_checkpoint
from calomel.engine.denoise import Denoiser, StepReport
from calomel.engine.errors import InvalidRequestError
from calomel.engine.foresight import Foresight
from calomel.engine.job import Clock
from calomel.engine.length import LengthBias
from calomel.engine.precision import native_bfloat16
from calomel.engine.request import Priority
from calomel.engine.resident.options import ResidentOptions
from calomel.engine.serving import PLACES, PREFILL_SECONDS, Serving
from calomel.engine.transformer import Transformer
from calomel.engine.work import Work

# A keystroke adds a few tokens to the cached prefix, and the near suffix follows it.
_WITHIN_FIRST_STEP: Final = 64


class Engine(Serving):
    """Serves requests on one model, from a thread of its own.

    Args:
        model: the decoder, on its device.
        cache_tokens: context tokens that the prefix cache has room for.
        spare_tokens: room for contexts and answers that are laid out: those being served, of which there are no more at
            a time, and those of the last requests, so that the next keystroke of as many contexts copies nothing. None
            for a quarter of the cache beside whatever is being served.
        page_size: tokens of a cache page; a whole number of blocks at least, where the checkpoint has blocks.
        max_batch: requests of one priority that are served at a time.
        prefill_chunk: context tokens encoded per step at most; so long does a cancellation wait.
        prefill_seconds: chunks become shorter where one takes longer while somebody else is served, see `Serving`.
        device: where the model is moved to.
        threads: of a large CPU forward; None for PyTorch's own choice. A small one runs on one thread.
        length_bias: canvas length to the confidence that the length probe subtracts for it.
        clock: seconds that deadlines are compared with.
        observe: called on the engine's thread behind every forward.
        foresight: which second steps ride on first ones; None for the usual ones.
        resident: denoising steps stay on the device, see `ResidentOptions`; None for so on CUDA alone, False for never.
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
        prefill_seconds: float | None = PREFILL_SECONDS,
        device: torch.device | str = "cpu",
        threads: int | None = None,
        length_bias: LengthBias | None = None,
        clock: Clock = time.monotonic,
        observe: Callable[[StepReport], None] | None = None,
        foresight: Foresight | None = None,
        resident: ResidentOptions | Literal[False] | None = None,
    ) -> None:
        if page_size < 1:
            raise InvalidRequestError(f"page_size is {page_size}; it must be at least 1")
        if cache_tokens < page_size:
            raise InvalidRequestError(f"cache_tokens is {cache_tokens}; it must be at least a page of {page_size}")
        if threads is not None and threads < 1:
            raise InvalidRequestError(f"threads is {threads}; it must be at least 1")
        model = model.to(device).eval()
        self.weight_bytes = sum(parameter.nbytes for parameter in model.parameters())
        block = model.config.diffusion.block
        page_size += -page_size % block
        weight = model.embed_tokens.weight
        pages = max(1, cache_tokens // page_size)
        self.cache = PrefixCache(
            model.config, pages=pages, page_size=page_size, dtype=weight.dtype, device=weight.device
        )
        denoiser = Denoiser(
            model,
            self.cache,
            slots=max_batch * PLACES * len(Priority),
            spare_tokens=cache_tokens // 4 if spare_tokens is None else spare_tokens,
            room=spare_tokens,
            threads=threads,
            within_first_step=min(_WITHIN_FIRST_STEP, prefill_chunk),
            within_forward=prefill_chunk,
            length_bias=length_bias,
            clock=clock,
            observe=observe,
            resident=_resident_on(weight.device) if resident is None else resident or None,
        )
        self._denoiser = denoiser
        if foresight is not None:
            self.foresee(foresight)
        super().__init__(
            denoiser,
            max_batch=max_batch,
            prefill_chunk=prefill_chunk,
            prefill_unit=block,
            prefill_seconds=prefill_seconds,
        )

    @property
    def work(self) -> Work:
        """What was done so far."""
        return self._denoiser.work

    def foresee(self, foresight: Foresight) -> None:
        """Guess second steps as `foresight` does, from now on."""
        self._denoiser.foresee(foresight)

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


def native_dtype(device: str) -> torch.dtype:
    """The type that `device` computes fastest in: bfloat16 where it is native, else float32."""
    return torch.bfloat16 if torch.device(device).type == "cuda" or native_bfloat16() else torch.float32


def _resident_on(device: torch.device) -> ResidentOptions | None:
    # On a CPU a fixed shape only adds rows: there is no launch to save, and no copy between host and device.
    return ResidentOptions() if device.type == "cuda" else None
