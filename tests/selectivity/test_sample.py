from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.selectivity.made import sample

from calomel.selectivity.sample import OUTCOMES, Sample, SampleError, read_samples

FULL = sample(
    3,
    filters=("secret", "too_large"),
    saved_characters=4,
    judged_ms=0.25,
    shown=False,
    text="ünï\u2028\ncode",
    wanted="other",
    request={"prompt": {"prefix": "a\n"}},
)


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text(FULL.to_line() + "\n" + sample(4).to_line(), encoding="utf-8")
    assert list(read_samples([path])) == [FULL, sample(4)]
    assert list(read_samples([path, path]))[2:] == [FULL, sample(4)]


def test_a_sample_is_one_line_without_what_is_not_known() -> None:
    line = FULL.to_line()
    assert line.count("\n") == 1
    assert "\u2028" not in line
    assert "request" in json.loads(line)
    assert {"text", "wanted", "request"}.isdisjoint(json.loads(sample().to_line()))


def test_what_a_later_version_adds_is_left_out_and_what_it_leaves_out_has_a_default() -> None:
    line = json.dumps({"question": "q", "kind": "edit", "outcome": "partly", "mood": "good"})
    assert Sample.from_line(line) == Sample("edit", question="q", outcome="partly")


def test_only_what_a_person_could_decide_about_is_decided() -> None:
    decided = {outcome for outcome in OUTCOMES if sample(outcome=outcome).decided}
    assert decided == {"accepted", "partly", "rejected"}
    assert [outcome for outcome in OUTCOMES if sample(outcome=outcome).accepted] == ["accepted"]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "7",
        '{"question": "q", "kind": "fill"}',
        '{"question": "q", "kind": "fill", "outcome": "liked"}',
        '{"question": "q", "kind": "fill", "outcome": ["accepted"]}',
        '{"question": "q", "kind": "fill", "outcome": "accepted", "signals": [1]}',
        '{"question": "q", "kind": "fill", "outcome": "accepted", "filters": 7}',
    ],
)
def test_a_damaged_line_is_named_by_file_and_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "torn.jsonl"
    path.write_text(f"{FULL.to_line()}\n{line}\n", encoding="utf-8")
    reading = read_samples([path])
    assert next(reading) == FULL
    with pytest.raises(SampleError, match=r"torn\.jsonl, line 3, is no sample"):
        next(reading)


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.jsonl"):
        list(read_samples([tmp_path / "none.jsonl"]))
