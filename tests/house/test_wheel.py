from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_wheel_holds_the_packages_the_weights_and_nothing_else(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    weights = {"config.json", "tokenizer.json", "model.safetensors", "MODEL_CARD.md"}
    assert {f"calomel/weights/nano/{name}" for name in weights} <= names
    assert any(name.startswith("calomel/cli/samples/") for name in names)
    for package in ("cli", "engine", "prompts", "server", "suggest"):
        assert f"calomel/{package}/py.typed" in names
    assert {name.partition("/")[0].rpartition(".")[2] for name in names} == {"calomel", "dist-info"}
    assert not [name for name in names if "__pycache__" in name]
