"""Apple's GPUs, as torch would have them: none is here, so what it says of them is made up, and nothing runs on one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.cli.conftest import Runner

from calomel.cli import checks
from calomel.engine import algorithms, bidirectional, sampling
from calomel.engine.checkpoint import native_dtype
from calomel.families.memory import free_bytes
from calomel.infer.completer import FillRequest
from calomel.infer.in_process import open_filler
from calomel.prompts.parts import PromptParts
from calomel.storage import available_bytes

GIB = 2**30


@pytest.mark.parametrize(("newer", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
def test_bfloat16_is_taken_from_the_macos_on_that_has_it(
    monkeypatch: pytest.MonkeyPatch, *, newer: bool, dtype: torch.dtype
) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_macos_or_newer", lambda *version: newer and version == (14, 0))
    assert native_dtype("mps") == dtype


@pytest.mark.parametrize("recommended", [3 * GIB, 1024 * GIB])
def test_its_memory_is_a_part_of_the_machines(monkeypatch: pytest.MonkeyPatch, recommended: int) -> None:
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: recommended)
    monkeypatch.setattr(torch.mps, "driver_allocated_memory", lambda: GIB)
    if recommended == 3 * GIB:
        assert free_bytes("mps") == 2 * GIB
    else:
        assert GIB < free_bytes("mps") <= available_bytes() + GIB


@pytest.mark.parametrize(("there", "level", "words"), [(True, "ok", "an Apple GPU"), (False, "fail", "no Apple GPU")])
def test_the_doctor_says_whether_there_is_one(
    monkeypatch: pytest.MonkeyPatch, *, there: bool, level: str, words: str
) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: there)
    # Where there is none, nothing can be computed on it.
    monkeypatch.setattr(torch, "zeros", lambda size, *, device: torch.full((size,), 0.0))
    found = checks.check_device("mps")
    assert found.level == level
    assert words in found.found


def test_a_machine_without_one_says_so_before_anything_is_loaded(run: Runner, tmp_path: Any) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = \n")
    done = run("fill", file, "--at", "1:5", "--device", "mps")
    assert done.status == 2
    assert "--device mps does not work here" in done.err


def test_answers_are_the_same_without_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = FillRequest("fill", PromptParts(path="a.py", prefix="def add(a, b):\n    return "), recall=False)
    fills = []
    for module in (None, sampling):
        if module is not None:
            for each in (sampling, bidirectional, algorithms):
                monkeypatch.setattr(each, "precise", torch.Tensor.float)
        filler = open_filler()
        fills.append(filler.fill(asked))
        filler.close()
    first, second = (replace(each, seconds=0.0, result=None, cached_tokens=0) for each in fills)  # type: ignore[arg-type]
    assert first == second
