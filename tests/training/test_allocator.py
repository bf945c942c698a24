from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# The pages that the system gives a process for a block of 64 MiB that is freed and asked for again, twenty times.
PROGRAM = """
import resource, sys
import torch
from calomel.training.allocator import keep_freed_memory

if sys.argv[1] == "keep":
    assert keep_freed_memory()
torch.zeros(16 * 2**20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    torch.zeros(16 * 2**20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(mode: str) -> int:
    found = subprocess.run([sys.executable, "-c", PROGRAM, mode], capture_output=True, text=True, check=True)
    return int(found.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_freed_memory_is_used_again_without_asking_the_system() -> None:
    assert faults("keep") < faults("plain") / 10
