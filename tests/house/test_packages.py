"""The folders of the house and what they need: typed, declared, pinned, and free of torch but for the engine's."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(
    path.relative_to(ROOT / part).as_posix().replace("/", ".")
    for part in ("server", "lsp", "model", "eval")
    for path in (ROOT / part / "calomel").iterdir()
    if path.is_dir() and path.name != "__pycache__"
)
WITH_TORCH = {"calomel.engine", "calomel.families", "calomel.training"}
# Needs Ray, which the extra `cluster` brings: imported by `serve run` only.
WITH_RAY = {"calomel.server.cluster"}


def folder_of(package: str) -> Path:
    return next(ROOT.glob(f"*/{package.replace('.', '/')}"))


@pytest.mark.parametrize("part", ["server", "lsp", "model", "eval"])
def test_namespace_has_no_module_of_its_own(part: str) -> None:
    assert [path.name for path in (ROOT / part / "calomel").iterdir() if path.is_file()] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_package_is_typed_and_says_what_it_is(package: str) -> None:
    assert (folder_of(package) / "py.typed").is_file()
    assert (folder_of(package) / "__init__.py").read_text(encoding="utf-8").startswith('"""')


def test_importing_a_package_does_not_import_torch() -> None:
    modules = [
        f"{package}.{path.stem}"
        for package in PACKAGES
        for path in sorted(folder_of(package).glob("*.py"))
        if package not in WITH_TORCH and not path.stem.startswith("__")
    ]
    script = f"""
import importlib, sys
for name in {sorted(set(modules) - WITH_RAY)}:
    importlib.import_module(name)
    assert not sys.modules.keys() & {{"torch", "transformers"}}, name
"""
    subprocess.run([sys.executable, "-c", script], check=True)


# Compiled against the torch and the CUDA of the machine it runs on.
UNPINNED = {"calomel", "flash-attn"}
# PyTorch's builds for CUDA bring it.
BROUGHT = {"triton"}
# What one command or one family of models wants, which says how to get it, and the extra that brings it.
WANTED_BY_ONE = {
    "huggingface-hub": "hub",
    "ray": "cluster",
    "scipy": "bench",
    "gguf": "gguf",
    "transformers": "gguf",
    "xllamacpp": "llama",
    "torch": "engine",
    "tokenizers": "engine",
    "safetensors": "engine",
    "llguidance": "engine",
}


def project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        found: dict[str, Any] = tomllib.load(file)["project"]
    return found


def pins() -> dict[str, Version]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def test_every_requirement_is_pinned_within_its_bounds() -> None:
    found = project()
    assert pins()["torch"].local is None
    for text in chain(found["dependencies"], *found["optional-dependencies"].values()):
        requirement = Requirement(text)
        if requirement.name not in UNPINNED:
            assert pins()[canonicalize_name(requirement.name)] in requirement.specifier


def imported_from_outside(folder: Path) -> Iterator[str]:
    """Names of the distributions that the Python files below `folder` import, at the top or in a function."""
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            else:
                continue
            tops = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"calomel"}
            yield from (canonicalize_name(top) for top in tops)


@pytest.mark.parametrize(
    ("pattern", "extra"),
    [
        ("*/calomel/*", None),
        ("model/calomel/training", "train"),
        ("eval/calomel/bench", "bench"),
        ("eval/calomel/report", "bench"),
    ],
)
def test_what_is_imported_is_declared(pattern: str, extra: str | None) -> None:
    found = project()
    declared = [*found["dependencies"], *(found["optional-dependencies"][extra] if extra else [])]
    optional = found["optional-dependencies"]
    wanted = [text for name, each in WANTED_BY_ONE.items() for text in optional[each] if Requirement(text).name == name]
    names = {canonicalize_name(Requirement(text).name) for text in (*declared, *wanted)}
    with_extra = set() if extra else {"training", "bench", "report"}
    folders = [folder for folder in ROOT.glob(pattern) if folder.is_dir() and folder.name not in with_extra]
    assert {name for folder in folders for name in imported_from_outside(folder)} - names <= BROUGHT


def test_changelog_begins_with_the_version_of_the_package() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[?([0-9]+\.[0-9]+\.[0-9]+)", changelog, re.MULTILINE)
    assert newest is not None
    assert newest[1] == project()["version"]


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
    for package in ("cli", "engine", "infer", "prompts", "server", "suggest"):
        assert f"calomel/{package}/py.typed" in names
    assert {name.partition("/")[0].rpartition(".")[2] for name in names} == {"calomel", "dist-info"}
    assert not [name for name in names if "__pycache__" in name]
