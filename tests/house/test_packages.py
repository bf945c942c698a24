"""The folders of the house: every package is whole, typed and, but for the engine's side, free of torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(
    path.relative_to(ROOT / part).as_posix().replace("/", ".")
    for part in ("server", "lsp", "model", "eval")
    for path in (ROOT / part / "calomel").iterdir()
    if path.is_dir() and path.name != "__pycache__"
)
WITH_TORCH = {"calomel.engine", "calomel.families", "calomel.training"}
# Needs Ray, which the extra `cluster` brings: imported by `calomel serve --replicas` alone.
WITH_RAY = {"calomel.server.replicas"}


def folder_of(package: str) -> Path:
    return next(ROOT.glob(f"*/{package.replace('.', '/')}"))


@pytest.mark.parametrize("part", ["server", "lsp", "model", "eval"])
def test_namespace_has_no_module_of_its_own(part: str) -> None:
    assert [path.name for path in (ROOT / part / "calomel").iterdir() if path.is_file()] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_package_is_typed_and_says_what_it_is(package: str) -> None:
    assert (folder_of(package) / "py.typed").is_file()
    assert (folder_of(package) / "__init__.py").read_text(encoding="utf-8").startswith('"""')


@pytest.mark.parametrize("package", [package for package in PACKAGES if package not in WITH_TORCH])
def test_importing_a_package_does_not_import_torch(package: str) -> None:
    names = sorted(path.stem for path in folder_of(package).glob("*.py") if not path.stem.startswith("__"))
    imports = "\n".join(f"import {package}.{name}" for name in names if f"{package}.{name}" not in WITH_RAY)
    script = f"import sys, {package}\n{imports}\nprint(sorted(sys.modules.keys() & {{'torch', 'transformers'}}))"
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
