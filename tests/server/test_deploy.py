from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from calomel.server.settings import ServerSettings, load

DEPLOY = Path(__file__).parents[2] / "server" / "deploy"
ANALYZE = shutil.which("systemd-analyze")
# Of systemd's scale from 0 (closed) to 10 (open); what is left is the network and the compiler of kernels.
MOST_EXPOSED = 2.0


@pytest.mark.skipif(ANALYZE is None, reason="no systemd-analyze")
def test_the_unit_is_one_and_a_closed_one(tmp_path: Path) -> None:
    assert ANALYZE is not None
    # The program that it names is not installed here.
    unit = tmp_path / "calomel.service"
    unit.write_text(re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", (DEPLOY / "calomel.service").read_text()))
    verified = subprocess.run([ANALYZE, "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    said = [line for line in verified.stderr.splitlines() if "calomel" in line]
    rated = subprocess.run(
        [ANALYZE, "security", "--offline=true", "--no-pager", unit], capture_output=True, text=True, check=False
    )
    exposure = re.search(r"exposure level for calomel\.service: ([0-9.]+)", rated.stdout)

    assert (verified.returncode, said) == (0, [])
    assert exposure is not None
    assert float(exposure[1]) <= MOST_EXPOSED


def test_the_settings_beside_it_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ServerSettings.model_fields:
        monkeypatch.delenv(f"CALOMEL_{name.upper()}", raising=False)
    path = tmp_path / "calomel.toml"
    shutil.copy(DEPLOY / "calomel.toml", path)
    path.chmod(0o644)
    assert load({}, path).settings.offline


def test_every_variable_that_is_set_is_a_setting() -> None:
    found = set()
    for name in ("calomel.service", "Dockerfile", "compose.yaml"):
        found |= set(re.findall(r"CALOMEL_([A-Z_]+)(?:[=:])", (DEPLOY / name).read_text()))
    assert found
    assert {name.lower() for name in found} <= set(ServerSettings.model_fields)


def test_the_image_gets_what_the_package_is_built_from() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    build = tomllib.loads((DEPLOY.parents[1] / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    for folder in build["dev-mode-dirs"]:
        assert f"COPY {folder} {folder}\n" in text
    assert "\nUSER " in text
