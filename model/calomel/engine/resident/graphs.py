"""Steps of one shape as CUDA graphs: captured when a shape comes again, replayed from then on.

A captured step is launched as a whole, so that the host's share of it no longer grows with the number of kernels. All
graphs use one pool of memory: they run one after another, and what one of them leaves there nobody reads.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

import torch

log = logging.getLogger(__name__)

_MOST: Final = 64
_WARM_UPS: Final = 2  # libraries choose kernels and allocate workspaces in a first call, and must not while captured

Step = Callable[[], None]
Capture = Callable[[Step], Step]
"""Records what a step does, which runs it, and returns what does the same again."""


class Graphs:
    """Runs steps, each under a key that says all about it but for the contents of its tensors.

    Args:
        capture: how a step is recorded; None where that is not possible.
        most: so many recorded steps are kept, the last used ones.
    """

    def __init__(self, capture: Capture | None, most: int = _MOST) -> None:
        self._capture = capture
        self._most = most
        self._recorded: OrderedDict[Hashable, Step] = OrderedDict()
        self._met: OrderedDict[Hashable, None] = OrderedDict()

    def prepared(self, key: Hashable, step: Step, idle: Step) -> Step:
        """`step`, or what was recorded of it.

        Args:
            key: what is recorded under equal ones does the same.
            step: reads and writes tensors that stay where they are.
            idle: makes these tensors such that `step` changes nothing that is kept; called before it is recorded.
        """
        recorded = self._recorded.get(key)
        if recorded is not None:
            self._recorded.move_to_end(key)
            return recorded
        if self._capture is None:
            return step
        if key in self._met:
            idle()
            return self._record(self._capture, key, step)
        self._met[key] = None
        if len(self._met) > 4 * self._most:
            self._met.popitem(last=False)
        return step

    def _record(self, capture: Capture, key: Hashable, step: Step) -> Step:
        try:
            recorded = capture(step)
        except RuntimeError as error:
            log.warning("steps are not captured as CUDA graphs, and run without: %s", str(error).partition("\n")[0])
            self._capture = None
            return step
        self._recorded[key] = recorded
        if len(self._recorded) > self._most:
            self._recorded.popitem(last=False)
        return recorded


class CudaCapture:
    """Records steps on a CUDA device, in one pool of memory."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream(device)

    def __call__(self, step: Step) -> Step:
        """Run `step` to warm it up, record it, and return its replay."""
        with torch.cuda.device(self._device):
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                for _ in range(_WARM_UPS):
                    step()
            torch.cuda.current_stream().wait_stream(self._stream)
            graph = torch.cuda.CUDAGraph()
            # Other threads may use the device meanwhile, as a page of metrics does.
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
                step()
        return graph.replay


def capture_on(device: torch.device) -> Capture | None:
    """How steps are recorded on `device`; None where it has no graphs."""
    return CudaCapture(device) if device.type == "cuda" else None
