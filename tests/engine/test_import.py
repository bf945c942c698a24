from __future__ import annotations

import os
import subprocess
import sys

REPORT = """
import os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print(*(os.environ.get(key) for key in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")))
            raise SystemExit

sys.meta_path.insert(0, Watch())
import calomel.engine
"""


def imported(**environment: str) -> str:
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    run = subprocess.run(
        [sys.executable, "-c", REPORT], env=clean | environment, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def test_openmp_waits_passively_before_torch_is_imported() -> None:
    assert imported() == "PASSIVE 0 0"


def test_the_users_own_settings_stay() -> None:
    assert imported(OMP_WAIT_POLICY="ACTIVE") == "ACTIVE 0 0"
