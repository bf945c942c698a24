"""Steps of few rows on a GPU: the part of a layer beside attention, compiled and recorded once per number of rows.

A denoising step launches hundreds of kernels that take less time than their launches. `torch.compile` fuses them, and
its mode `reduce-overhead` replays recordings (CUDA graphs). A recording has one shape: rows are padded to the next of a
few sizes, which changes no row, since everything compiled works row by row. Attention is not compiled, as it reads a
different number of keys in each step.

On a CPU there is no launch to save (docs/decisions/011).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.transformer import Attend, Layer

LOG: Final = logging.getLogger(__name__)
# Rows. A canvas with the text typed before it fits into the first or second size, canvases of several requests into the
# last; a chunk of context exceeds them all, and its launches cost little beside its arithmetic.
SIZES: Final = (32, 96, 256)


class CompiledLayers:
    """Takes few rows through layers. A failure is logged once; from then on nothing is taken.

    Args:
        backend: of `torch.compile`.
    """

    def __init__(self, backend: str | Callable[..., Any] = "inductor") -> None:
        options: dict[str, Any] = {"mode": "reduce-overhead"} if backend == "inductor" else {}
        self._before = torch.compile(_before, backend=backend, fullgraph=True, dynamic=False, **options)
        self._after = torch.compile(_after, backend=backend, fullgraph=True, dynamic=False, **options)
        self._failed = False

    def __call__(self, layers: Iterable[Layer], x: Tensor, cos: Tensor, sin: Tensor, attend: Attend) -> Tensor | None:
        """X [T, C], cos and sin [T, 1, R] to [T, C]; None if there are too many rows, or compiled layers fail."""
        size = next((size for size in SIZES if size >= len(x)), None)
        if size is not None and not self._failed:
            try:
                return self._padded(layers, x, cos, sin, attend, size)
            except Exception as error:  # noqa: BLE001  (a compiler fails in many ways, none of them fatal)
                self._failed = True
                LOG.warning("compiled steps failed; continuing without compiling: %r", error)
        return None

    def _padded(
        self, layers: Iterable[Layer], x: Tensor, cos: Tensor, sin: Tensor, attend: Attend, size: int
    ) -> Tensor:
        rows = len(x)
        x, cos, sin = (_pad(part, size) for part in (x, cos, sin))
        # Allow the outputs of the last step in recorded memory to be overwritten.
        torch.compiler.cudagraph_mark_step_begin()
        for layer in layers:
            q, k, v = self._before(layer, x, cos, sin)
            x = self._after(layer, x, _pad(attend(layer.number, q[:rows], k[:rows], v[:rows]), size))
        return x[:rows]


def _before(layer: Layer, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return layer.before(x, cos, sin)


def _after(layer: Layer, x: Tensor, attended: Tensor) -> Tensor:
    return layer.after(x, attended)


def _pad(part: Tensor, size: int) -> Tensor:
    """Append rows of zeros to `part`, up to `size`."""
    return F.pad(part, (0, 0) * (part.dim() - 1) + (0, size - len(part)))
