"""The process of a run: its memory, the signals that end it, and the others that train the same model with it."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Self

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, distributed

from calomel.training.config import TrainingConfigError

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_LARGEST_INT: Final = 2**31 - 1
_TOP_PAD_BYTES: Final = 256 * 2**20


def keep_freed_memory() -> bool:
    """Set glibc's allocator for the rest of this process; False where there is another C library."""
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _LARGEST_INT), (_TOP_PAD, _TOP_PAD_BYTES))
    return all(mallopt(name, value) for name, value in settings)


class Interruption:
    """Whether the process was asked to end (SIGINT, SIGTERM): behind the step in progress; asked again, at once.

    It hears while it is entered, and in a main thread only.

    Attributes:
        asked: to be looked at between two steps.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._hear) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def progress_bar(console: Console) -> Progress:
    """What a run shows of how far it is."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.1f} %"))
    return Progress(*columns, TimeRemainingColumn(), console=console)


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among those that train together.

    Attributes:
        rank: 0 to `count` - 1; the first one logs and saves.
        count: 1 for a run of one process.
    """

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this process logs and saves."""
        return self.rank == 0

    @classmethod
    @contextmanager
    def joined(cls, device: torch.device) -> Iterator[Self]:
        """Join the processes that `torchrun` has started; a process that was started alone stays alone.

        Raises:
            TrainingConfigError: what the environment says of them is no number, or the others can not be reached.
        """
        try:
            count, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
        except ValueError as error:
            raise TrainingConfigError(f"WORLD_SIZE or RANK is no number: {error}") from error
        if count == 1:
            yield cls()
            return
        try:
            distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
        except (ValueError, RuntimeError) as error:
            raise TrainingConfigError(
                f"the other ranks can not be reached; start all with torchrun: {error}"
            ) from error
        try:
            yield cls(rank, count)
        finally:
            distributed.destroy_process_group()

    def share(self, tensors: Iterable[Tensor]) -> None:
        """Give every rank the first one's values, in place."""
        if self.count > 1:
            with torch.no_grad():
                for tensor in tensors:
                    distributed.broadcast(tensor, src=0)

    def average(self, parameters: Iterable[Tensor]) -> None:
        """Replace the gradients of `parameters` by their mean over all ranks, in one exchange.

        A parameter without a gradient here counts as zero: another rank's batch may have used it.
        """
        if self.count == 1:
            return
        wanted = [parameter for parameter in parameters if parameter.requires_grad]
        for parameter in wanted:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in wanted if parameter.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        distributed.all_reduce(flat)
        flat /= self.count
        for gradient, mean in zip(gradients, flat.split([each.numel() for each in gradients]), strict=True):
            gradient.copy_(mean.view_as(gradient))

    def total(self, values: Tensor) -> Tensor:
        """The sum over all ranks of a float tensor on the host."""
        if self.count == 1:
            return values
        device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
        summed = values.to(device, torch.float64)
        distributed.all_reduce(summed)
        return summed.to("cpu", values.dtype)

    def wait(self) -> None:
        """Until every rank has come here."""
        if self.count > 1:
            distributed.barrier()


def own_device(name: str) -> torch.device:
    """`name`, or where it is `cuda` without a number and `torchrun` has started this process, the GPU of its own."""
    local = os.environ.get("LOCAL_RANK")
    return torch.device(f"cuda:{local}" if name == "cuda" and local is not None else name)
