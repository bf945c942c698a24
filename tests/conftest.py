"""What all tests share: how processors are used, which tests come last, and which need a GPU."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# Before torch is imported anywhere: spinning threads slow down every neighbour, and tiny models gain nothing from many.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Under `nohup`, and behind an `&`, programs that a test starts would not hear SIGHUP, or SIGINT: what is ignored is
# inherited, a handler is not.
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes is the machine's doing: a speed claim is a benchmark, never a test.
# Where a change is judged, examples are the same each time, so that what fails is the change; elsewhere they are new.
settings.register_profile(
    "calomel",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI", "") not in ("", "0", "false"),
)
settings.load_profile("calomel")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("e2e") is not None)
    if any(item.get_closest_marker("gpu") for item in items):
        import torch

        if not torch.cuda.is_available():
            for item in items:
                if item.get_closest_marker("gpu"):
                    item.add_marker(pytest.mark.skip(reason="no CUDA device"))
