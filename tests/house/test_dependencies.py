"""pyproject.toml, constraints.txt and the imports agree."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
# Compiled against the torch and the CUDA of the machine it runs on.
UNPINNED = {"calomel", "flash-attn"}
# What one command or one family of models wants, which says how to get it, and the extra that brings it.
WANTED_BY_ONE = {"huggingface-hub": "hub", "ray": "cluster", "scipy": "bench", "transformers": "families"}


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
    names = {canonicalize_name(Requirement(text).name) for text in declared}
    names |= {
        canonicalize_name(name)
        for name, each in WANTED_BY_ONE.items()
        if name in {canonicalize_name(Requirement(text).name) for text in found["optional-dependencies"][each]}
    }
    with_extra = set() if extra else {"training", "bench", "report"}
    folders = [folder for folder in ROOT.glob(pattern) if folder.is_dir() and folder.name not in with_extra]
    assert {name for folder in folders for name in imported_from_outside(folder)} - names == set()


def test_torch_is_pinned_without_a_local_version() -> None:
    assert pins()["torch"].local is None


def test_changelog_begins_with_the_version_of_the_package() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[?([0-9]+\.[0-9]+\.[0-9]+)", changelog, re.MULTILINE)
    assert newest is not None
    assert newest[1] == project()["version"]
