from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pytest

from calomel.training.corpus.contamination import MeasuringData, python_signatures, read_measuring_data

LINES = [f"let reading_{word} = sensor.measure_everything_about({word});" for word in ("one", "two", "three", "four")]


@pytest.fixture
def measuring(tmp_path: Path) -> MeasuringData:
    (tmp_path / "trace.json.gz").write_bytes(gzip.compress(json.dumps({"endContent": "\n".join(LINES)}).encode()))
    task = {
        "prompt": "def has_close_elements(numbers: List[float], threshold: float) -> bool:\n",
        "canonical_solution": "",
    }
    (tmp_path / "HumanEval.jsonl.gz").write_bytes(gzip.compress(json.dumps(task).encode() + b"\n"))
    read = read_measuring_data(tmp_path)
    assert read is not None
    return read


def test_three_shared_lines_are_too_many(measuring: MeasuringData) -> None:
    reindented = "\n".join(f"        {line}" for line in LINES)
    assert measuring.fault(reindented) == "contaminated"
    assert measuring.fault("\n".join(LINES[:2])) is None


def test_repeating_one_shared_line_is_no_contamination(measuring: MeasuringData) -> None:
    assert measuring.fault("\n".join(LINES[:1] * 5)) is None


def test_a_benchmark_function_is_known_by_its_signature_whatever_its_types(measuring: MeasuringData) -> None:
    assert measuring.fault("def has_close_elements(numbers, threshold=0.1):\n    pass\n") == "contaminated"
    assert measuring.fault("def has_close_elements(self, numbers):\n    pass\n") is None


def test_signatures_leave_types_and_defaults_out() -> None:
    text = "def f(a: dict[str, int] = {}, *args, b=(1, 2)) -> int: ..."
    assert list(python_signatures(text)) == ["f(a,*args,b)"]


def test_recorded_base64_bodies_are_looked_into(tmp_path: Path) -> None:
    body = base64.b64encode(json.dumps({"text": "\n".join(LINES)}).encode()).decode()
    (tmp_path / "x.ndjson").write_text(json.dumps({"body": body}) + "\n")
    measuring = read_measuring_data(tmp_path)
    assert measuring is not None
    assert measuring.fault("\n".join(LINES)) == "contaminated"


def test_absent_data_is_not_mistaken_for_empty_data(tmp_path: Path) -> None:
    assert read_measuring_data(tmp_path / "absent") is None
