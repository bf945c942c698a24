"""Recorded answers of other models: as they are, and through the editor's side."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from calomel.bench.recorded import RecordedOptions, recorded_text, run_recorded
from calomel.bench.suite import SuiteError

TEXT = "def area(size):\n    return size * size\n\n\nprint(area(2))\n"
WANTED = "def area(width):\n    return width * width\n\n\nprint(area(2))\n"
SCENARIO = """A parameter is renamed.
id: rename
language: python
file: area.py
row: 1
col: 14
-- buffer.txt --
{text}-- history --
<|file|> area.py
<|old|>
def area(size_in_metres):
<|new|>
def area(size):
-- steps --
request-completion manual
-- expected --
{wanted}"""
QUIET = """Nothing is to come.
id: quiet
language: python
file: done.py
row: 1
col: 1
-- buffer.txt --
x = 1
-- steps --
request-completion manual
"""


def record(folder: Path, provider: str, request: object, response: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"kind": "meta"}]
    for kind, body in (("request", request), ("response", response)):
        rows.append({"kind": kind, "body_b64": base64.b64encode(json.dumps(body).encode()).decode()})
    path = folder / f"{provider}.ndjson"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def mercury(region: str, answer: str) -> tuple[object, object]:
    prompt = f"<|code_to_edit|>\n{region[:5]}<|cursor|>{region[5:]}<|/code_to_edit|>\n"
    return {"messages": [{"content": prompt}]}, {"choices": [{"message": {"content": f"```\n{answer}```"}}]}


def zeta2(region: str, answer: str) -> tuple[object, object]:
    return {"prompt": f"<<<<<<< CURRENT\n{region}=======\n"}, {"choices": [{"text": f"{answer}>>>>>>> UPDATED\n"}]}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "rename.txtar").write_text(SCENARIO.format(text=TEXT, wanted=WANTED), encoding="utf-8")
    (tmp_path / "quiet.txtar").write_text(QUIET, encoding="utf-8")
    record(tmp_path / "recorded/rename", "mercury-made-up", *mercury(TEXT, WANTED))
    record(tmp_path / "recorded/quiet", "mercury-made-up", *mercury("x = 1\n", "x = 1\n"))
    record(tmp_path / "recorded/rename", "zeta-2-made-up", *zeta2(TEXT, TEXT))
    record(
        tmp_path / "recorded/quiet",
        "zeta-2-made-up",
        *zeta2("x = 1\n", "x = 1\nprint(x)\nprint(x)\nprint(x)\nprint(x)\n"),
    )
    return tmp_path


def test_a_right_answer_is_offered_whole_and_a_silent_one_stays_silent(suite: Path) -> None:
    report = run_recorded(RecordedOptions(suite, suite / "recorded", chain=True))
    right = "mercury-made-up"
    for kind in ("raw_", "", "chain_"):
        assert [report.flat[f"{right}.{kind}{key}"] for key in ("exact_match", "quiet_rate", "show_rate")] == [1, 1, 1]
    assert report.flat["zeta-2-made-up.raw_quiet_rate"] == 0
    assert report.flat["zeta-2-made-up.chain_quiet_rate"] == 1  # the same line again and again


def test_what_is_lost_is_said_with_its_reason(suite: Path) -> None:
    edits = {"right": WANTED, "key": TEXT.replace("size * size", "'sk-live-4f9aB2cD8eF0gH1jK5mN'")}
    record(suite / "recorded/rename", "mercury-made-up", *mercury(TEXT, edits["key"]))
    report = run_recorded(RecordedOptions(suite, suite / "recorded"))
    rows = [row for row in report.tables[1].rows if row[0] == "mercury-made-up"]
    assert [(row[1], row[-1]) for row in rows] in ([("rename", "held back: secret")], [])
    assert "mercury-made-up.chain_score" not in report.flat


@pytest.mark.parametrize("content", ["", "no json", '{"kind": "response", "body_b64": "WzFd"}'])
def test_a_file_that_is_not_a_recording_is_named(suite: Path, content: str) -> None:
    path = suite / "recorded/rename/mercury-made-up.ndjson"
    path.write_text(content, encoding="utf-8")
    if content:
        with pytest.raises(SuiteError, match="mercury-made-up"):
            recorded_text(path, TEXT)
    else:
        assert recorded_text(path, TEXT) is None


def test_a_folder_without_recordings_is_named(tmp_path: Path, suite: Path) -> None:
    with pytest.raises(SuiteError, match="nowhere"):
        run_recorded(RecordedOptions(suite, tmp_path / "nowhere"))
