"""HumanEval-Infilling (Bavarian et al. 2022, openai/human-eval-infilling): tasks, answers, programs to run.

Single line: one line was taken out, its line end included, so the answer is cut behind its first line; that is the same
for every policy. Random span: anything from some character to another; the answer is taken as it is.
"""

from __future__ import annotations

import gzip
import json
import os
import random
from dataclasses import dataclass
from pathlib import Path

from calomel.bench.heldout import BenchDataError
from calomel.bench.holes import Hole

SINGLE_LINE, RANDOM_SPAN = "humaneval_single_line", "humaneval_random_span"
FILES = {
    SINGLE_LINE: "HumanEval-SingleLineInfilling.jsonl.gz",
    RANDOM_SPAN: "HumanEval-RandomSpanInfillingLight.jsonl.gz",
}


@dataclass(frozen=True, slots=True)
class Task:
    """A hole with the test that says whether a filling works."""

    hole: Hole
    entry_point: str
    test: str

    def program(self, completion: str) -> str:
        """The whole program: prompt, completion, suffix, the test, and the call of the test."""
        return f"{self.hole.prefix}{completion}{self.hole.suffix}\n{self.test}\ncheck({self.entry_point})\n"


def data_folder() -> Path:
    """Where public data files lie: `CALOMEL_DATA`, by default `../shared/data`."""
    return Path(os.environ.get("CALOMEL_DATA") or "../shared/data")


def read_tasks(
    data: Path, *, seed: int, single_line: int | None = None, random_span: int | None = None
) -> tuple[Task, ...]:
    """The tasks of both files in a seeded order, at most so many of each.

    Raises:
        BenchDataError: a file is absent or damaged.
    """
    limits = {SINGLE_LINE: single_line, RANDOM_SPAN: random_span}
    return tuple(task for row, name in FILES.items() for task in _read(data, row, name, limits[row], seed))


def _read(data: Path, row: str, name: str, limit: int | None, seed: int) -> list[Task]:
    path = data / "human-eval-infilling" / name
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            raw = [json.loads(line) for line in file]
        tasks = [
            Task(
                Hole(
                    key=f"{row}:{entry['task_id']}",
                    row=row,
                    language="python",
                    path=None,
                    prefix=entry["prompt"],
                    suffix=entry["suffix"],
                    answer=entry["canonical_solution"],
                    max_tokens=64 if row == SINGLE_LINE else 128,
                    first_line_only=row == SINGLE_LINE,
                ),
                entry["entry_point"],
                entry["test"],
            )
            for entry in raw
        ]
    except FileNotFoundError as error:
        raise BenchDataError(f"{path} does not exist; CALOMEL_DATA names the folder above it") from error
    except (OSError, json.JSONDecodeError, KeyError) as error:
        raise BenchDataError(f"{path} is damaged: {error}") from error
    random.Random(f"{seed}:{row}").shuffle(tasks)  # noqa: S311 - seeded, not secret
    return tasks[:limit]
