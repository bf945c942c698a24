"""`calomel --help` answers at once because it imports next to nothing."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = {"fastapi", "httpx", "numpy", "pydantic", "rich", "starlette", "tokenizers", "torch", "transformers", "uvicorn"}
SCRIPT = """
import contextlib, io, json, sys
from calomel.cli.main import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(sys.argv[1:])
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def imported_by(*arguments: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_help_imports_nothing_heavy() -> None:
    assert set() == HEAVY & imported_by("--help")


def test_help_of_a_subcommand_imports_nothing_heavy() -> None:
    # typer checks the types of options with pydantic.
    assert HEAVY & imported_by("bench", "infill", "--help") <= {"pydantic"}
