"""The engine of models that read in both directions."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from calomel.engine.denoise import StepReport
from calomel.engine.errors import InvalidRequestError
from calomel.engine.length import LengthBias
from calomel.engine.serving import Serving
from calomel.engine.transformer import Transformer
from calomel.engine.window.options import WindowOptions
from calomel.engine.window.worker import WindowWorker


class WindowEngine(Serving):
    """Serves requests on one model that reads in both directions, from a thread of its own.

    Args:
        model: the network, on its device; its configuration `reads_suffix`.
        options: how the family denoises.
        max_batch: requests of one priority that are served at a time.
        device: where the model is moved to.
        threads: of a large CPU forward; None for PyTorch's own choice. A small one runs on one thread.
        length_bias: canvas length to the confidence that the length probe subtracts for it.
        clock: seconds that deadlines are compared with.
        observe: called on the engine's thread behind every forward.
    """

    def __init__(
        self,
        model: Transformer,
        options: WindowOptions | None = None,
        *,
        max_batch: int = 8,
        device: torch.device | str = "cpu",
        threads: int | None = None,
        length_bias: LengthBias | None = None,
        clock: Callable[[], float] = time.monotonic,
        observe: Callable[[StepReport], None] | None = None,
    ) -> None:
        if threads is not None and threads < 1:
            raise InvalidRequestError(f"threads is {threads}; it must be at least 1")
        worker = WindowWorker(
            model.to(device).eval(),
            options or WindowOptions(),
            threads=threads,
            length_bias=length_bias,
            clock=clock,
            observe=observe,
        )
        super().__init__(worker, max_batch=max_batch)
