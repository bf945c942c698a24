"""pyproject.toml and constraints.txt agree."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
# Compiled against the torch and the CUDA of the machine it runs on.
UNPINNED = {"calomel", "flash-attn"}


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


def test_torch_is_pinned_without_a_local_version() -> None:
    assert pins()["torch"].local is None


def test_changelog_begins_with_the_version_of_the_package() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[?([0-9]+\.[0-9]+\.[0-9]+)", changelog, re.MULTILINE)
    assert newest is not None
    assert newest[1] == project()["version"]
