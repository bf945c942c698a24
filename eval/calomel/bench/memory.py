"""Peak memory of this process, and of its device."""

from __future__ import annotations

import resource
import sys

from calomel.bench.report import Value

# getrusage counts KiB on Linux, bytes on macOS.
RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def peak_memory(device: str) -> dict[str, Value]:
    """`peak_memory_mib` (resident, whole process) and, on a GPU, `gpu_peak_memory_mib` (allocated tensors)."""
    keys: dict[str, Value] = {"peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT / 2**20}
    if device.startswith("cuda"):
        import torch

        keys["gpu_peak_memory_mib"] = torch.cuda.max_memory_allocated(device) / 2**20
    return keys
