from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.bench.suite import request, write_recording, write_suite

from calomel.bench.cases import SuiteError, read_suite
from calomel.bench.edits import EditsOptions, recorded_replies, run_edits
from calomel.bench.recorded_peer import read_exchanges, region_of_answer
from calomel.bench.suite_score import score_case, score_suite

DATA = Path(os.environ.get("CALOMEL_DATA") or Path(__file__).parents[3] / "shared" / "data") / "next-edit-scenarios"


def test_the_answer_takes_the_place_of_the_editable_region(tmp_path: Path) -> None:
    file = write_recording(
        tmp_path / "a.ndjson",
        (request("b<|cursor|>b\nc", before="a\n", after="d\n"), "```python\nB\nC\n```"),
    )
    (found,) = read_exchanges(file)
    assert found.text == "a\nbb\nc\nd"
    assert found.offset == 3
    assert found.after == "a\nB\nC\nd"
    assert found.latency_ms == 100


def test_an_answer_without_an_edit_is_silence(tmp_path: Path) -> None:
    file = write_recording(
        tmp_path / "a.ndjson", (request("a<|cursor|>"), "None"), (request("a<|cursor|>"), "```\na\n```")
    )
    assert [each.after for each in read_exchanges(file)] == [None, None]


@pytest.mark.parametrize(
    ("answer", "region"),
    [
        ("```\nx\n```", "x"),
        ("```go\nx\n\ny\n```\n", "x\n\ny"),
        ("x", "x"),
        ("None", None),
        ("", None),
        ("```\n\n```", None),
    ],
)
def test_the_region_is_taken_out_of_its_fence(answer: str, region: str | None) -> None:
    assert region_of_answer(answer) == region


def test_a_deleted_region_is_no_answer_that_the_endpoint_can_give(tmp_path: Path) -> None:
    file = write_recording(tmp_path / "a.ndjson", (request("a<|cursor|>"), "```\n\n```"))
    assert read_exchanges(file)[0].after is None


@pytest.mark.parametrize("damage", ["not json", '{"kind": "request"}'])
def test_a_damaged_recording_is_refused_in_a_sentence(tmp_path: Path, damage: str) -> None:
    file = write_recording(tmp_path / "a.ndjson", (request("a<|cursor|>"), "None"))
    file.write_text(file.read_text(encoding="utf-8") + damage, encoding="utf-8")
    with pytest.raises(SuiteError, match=r"a\.ndjson is no recording"):
        read_exchanges(file)


def test_an_error_that_was_recorded_is_not_silence(tmp_path: Path) -> None:
    file = write_recording(tmp_path / "a.ndjson", (request("a<|cursor|>"), "None"), status=500)
    with pytest.raises(SuiteError, match="status 500"):
        read_exchanges(file)


def test_recorded_answers_count_at_the_positions_that_they_were_recorded_at(tmp_path: Path) -> None:
    suite = write_suite(tmp_path)
    write_recording(
        suite / "mercury" / "01-rename.ndjson",
        (
            request("def bill(prices):\n    <|cursor|>amount = sum(prices)\n    return total"),
            "```\ndef bill(prices):\n    amount = sum(prices)\n    return amount\n```",
        ),
    )
    write_recording(suite / "mercury" / "02-quiet.ndjson", (request("def f(x):\n    return x<|cursor|>"), "None"))
    report = run_edits(EditsOptions(suite, peer="mercury", json=tmp_path / "out.json"))
    assert report.flat["score"] == pytest.approx(1.0)
    assert report.flat["positions_without_recording"] == 2
    assert [row["name"] for row in report.details["scenarios"]] == ["01-rename", "02-quiet@L2"]
    assert "other, published, 3 scenarios" in report.to_markdown()


# Each recorded answer was read beside its expected text. Right as a whole: 03, 07, 12, 21. 02: `"hello " + name`, the
# comma is missing. 09: the right loop by way of another variable, filter and collect are right. 10: the slice is read
# well, and written without append; its second answer is to the same text. 13: async, await and Promise are right, the
# loop stays. 22: renames the method called inside, not the variant that was begun. 23: the field is right, the
# function's name was left. 27 to 34: the region as it was. Figures: deltaChrF as published, and trimmed.
GOLDEN = {
    "02-js-greet-return": (False, 77.2773, 85.2178),
    "03-python-decorator-complete": (True, 8.5204, 100.0),
    "07-go-single-to-slice-arg": (True, 92.3801, 100.0),
    "09-rust-option-to-vec": (False, 94.6468, 96.3109),
    "10-go-map-value-to-slice": (False, 71.2926, 71.8291),
    "12-go-positional-to-options": (True, 93.1226, 100.0),
    "13-typescript-callback-to-promise": (False, 81.8944, 82.9132),
    "21-rust-tuple-to-struct-field": (True, 100.0, 100.0),
    "22-rust-rename-match-variant": (False, 24.8501, 24.8501),
    "23-js-rename-group-by-function": (False, 33.5243, 33.5243),
    "27-suppress-python-config@L9": (True, None, None),
    "29-suppress-ts-user@L8": (True, None, None),
    "32-suppress-python-decorator@L9": (True, None, None),
    "34-suppress-ts-emitter@L5": (True, None, None),
}


@pytest.mark.skipif(not (DATA / "mercury").is_dir(), reason="the public scenarios are not here")
def test_the_recorded_answers_of_mercury_get_what_they_deserve() -> None:
    cases, problems = read_suite(DATA)
    assert problems == ()
    rows = [score_case(case, replies) for case, replies in recorded_replies(cases, DATA / "mercury") if replies]
    assert [row.name for row in rows] == list(GOLDEN)
    for row in rows:
        right, published, trimmed = GOLDEN[row.name]
        assert row.right == right, row.name
        assert row.delta_chrf == (None if published is None else pytest.approx(published, abs=1e-4)), row.name
        assert row.delta_chrf_trimmed == (None if trimmed is None else pytest.approx(trimmed, abs=1e-4)), row.name
    whole = score_suite(rows)
    assert (whole.show_rate, whole.quiet_rate, whole.exact_match) == (1.0, 1.0, 0.4)
    assert whole.score == pytest.approx(0.6775, abs=1e-4)
    assert whole.score_trimmed == pytest.approx(0.7946, abs=1e-4)
