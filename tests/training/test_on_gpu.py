"""The command for a GPU, rehearsed on a CPU: what it needs, what it leaves, and that it keeps its time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.house.test_packages import ROOT

from calomel.families.loading import load_checkpoint
from calomel.prompts.parts import Edit
from calomel.training.config import BatchShape, ModelShape, TrainConfig
from calomel.training.edits.story import Story, write_stories
from calomel.training.on_gpu import check, pack, products, unpack
from calomel.training.rendered import render

MEBIBYTE = 2**20
# What a machine that only trains lacks.
ABSENT = (
    "cattrs", "fastapi", "gguf", "llguidance", "lsprotocol", "platformdirs", "pygls", "rapidfuzz", "starlette",
    "watchdog", "zstandard",
)  # fmt: skip
BLOCKED = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {ABSENT} or name.startswith("tree_sitter"):
            raise ImportError(f"{{name}} is absent")
sys.meta_path.insert(0, Absent())
"""


def tracked() -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def test_the_tracked_tree_is_small_enough_to_travel() -> None:
    assert sum(path.stat().st_size for path in tracked()) <= 52 * MEBIBYTE


def test_parts_are_small_and_give_the_files_back(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(torch.randn(12 * MEBIBYTE).bfloat16().view(torch.uint8).numpy().tobytes())
    (tmp_path / "log.jsonl").write_text("{}\n")

    parts = pack({"model.safetensors": weights, "log.jsonl": tmp_path / "log.jsonl"}, tmp_path / "parts")

    assert len(parts) == 2
    assert all(part.stat().st_size <= 16 * MEBIBYTE for part in parts)
    assert sum(part.stat().st_size for part in parts) < 0.85 * weights.stat().st_size
    found = unpack(tmp_path / "parts", tmp_path / "found")
    assert [path.read_bytes() for path in found] == [weights.read_bytes(), b"{}\n"]


def test_the_products_of_a_step_are_mostly_those_of_its_matrices(config: TrainConfig) -> None:
    shape = BatchShape(documents=108, front=512, holes=1, canvas=16)
    large = replace(
        config,
        model=ModelShape(
            hidden_size=576, intermediate_size=1536, layers=8, heads=9, kv_heads=3, head_dim=64, full_every=4
        ),
    )
    rows = 108 * (512 + 72)
    assert products(large, shape) / rows == pytest.approx(6 * 28.3e6, rel=0.3)


def test_the_check_compares_a_compiled_step_with_that_of_a_cpu(config: TrainConfig, tmp_path: Path) -> None:
    assert 0 <= check(config, tmp_path, torch.device("cpu")) < 0.03


@pytest.mark.slow
def test_a_rehearsal_from_a_packed_tree_trains_asks_and_packs(corpus: Path, tmp_path: Path) -> None:
    tree, stories = tmp_path / "tree", tmp_path / "stories"
    for path in tracked():
        if not path.is_relative_to(ROOT / "model/calomel/weights/nano"):
            target = tree / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    stories.mkdir()
    text = "def add(first, second):\n    return first + second\n\n\n" * 6
    changes = tuple(Edit(at, at + 6, "others") for at in range(len(text)) if text.startswith("second", at))
    for name in ("train-edits", "heldout-edits"):
        write_stories(stories / f"{name}.jsonl.zst", [Story("rename", "python", "a.py", text, changes)])
    render(corpus, stories, tree / "runs/shards", tokenizer=ROOT / "model/calomel/weights/nano/tokenizer.json")
    assert sum(path.stat().st_size for path in tree.rglob("*") if path.is_file()) < 64 * MEBIBYTE
    (tmp_path / "absent").mkdir()
    (tmp_path / "absent/sitecustomize.py").write_text(BLOCKED)

    command = [sys.executable, "-m", "calomel.training.on_gpu", "model/calomel/training/configs/nano-30m.toml"]
    options = "--out parts --seconds 60 --layers 2 --documents 1 --workers 1 --device cpu --then-seconds 5"
    then = "ls {checkpoint} > {out}/asked"
    began = time.monotonic()
    done = subprocess.run(
        [*command, *options.split(), "--then", then],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": f"{tmp_path / 'absent'}{os.pathsep}model"},
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
    )

    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 120
    files = {path.name: path for path in unpack(tree / "parts", tmp_path / "back")}
    assert load_checkpoint(tmp_path / "back").config.num_hidden_layers == 2
    assert load_file(files["model.safetensors"])
    assert files["asked"].read_text().split() == ["config.json", "model.safetensors", "tokenizer.json"]
    assert json.loads(files["told.json"].read_text())["share"] >= 1.0
