"""What all tests share: how processors are used, which tests come last, and which need a GPU."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# Before torch is imported anywhere: spinning threads slow down every neighbour, and tiny models gain nothing from many.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# How long an example takes is the machine's doing: a speed claim is a benchmark, never a test.
settings.register_profile("calomel", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("calomel")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("e2e") is not None)
    if any(item.get_closest_marker("gpu") for item in items):
        import torch

        if not torch.cuda.is_available():
            for item in items:
                if item.get_closest_marker("gpu"):
                    item.add_marker(pytest.mark.skip(reason="no CUDA device"))
