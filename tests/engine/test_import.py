from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from calomel.engine import Transformer
from calomel.engine.checkpoint import save_checkpoint

NAMES = (
    "OMP_WAIT_POLICY",
    "GOMP_SPINCOUNT",
    "KMP_BLOCKTIME",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY",
    "LRU_CACHE_CAPACITY",
)
REPORT = f"""
import os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print(*map(os.environ.get, {NAMES}))
            raise SystemExit

sys.meta_path.insert(0, Watch())
import calomel.engine
"""


def imported(**environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in NAMES}
    run = subprocess.run(
        [sys.executable, "-c", REPORT], env=clean | environment, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def test_openmp_waits_passively_and_little_code_is_kept_before_torch_is_imported() -> None:
    assert imported() == "PASSIVE 0 0 128 128"


def test_the_users_own_settings_stay() -> None:
    assert imported(OMP_WAIT_POLICY="ACTIVE") == "ACTIVE 0 0 128 128"


def test_a_checkpoint_is_loaded_without_the_compiler_of_torch(model: Transformer, tmp_path: Path) -> None:
    save_checkpoint(model, tmp_path)
    code = (
        "import pathlib, sys; from calomel.families.loading import load_checkpoint;"
        "load_checkpoint(pathlib.Path(sys.argv[1])); sys.exit('torch._dynamo' in sys.modules)"
    )

    subprocess.run([sys.executable, "-c", code, tmp_path], check=True)
