from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.replay.recordings import Recorder, shared

from calomel.replay.events import Edit, Expected, LogError
from calomel.replay.scored import read_scored


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    recorder = Recorder()
    recorder.document(0, "w\\a.ts", "let a = 1\n")
    recorder.change(0, 2, [4, 5, "b"])
    (tmp_path / "recording.w.json").write_text(
        json.dumps({"log": recorder.entries, "nextUserEdit": {"relativePath": "w\\a.ts", "edit": [[8, 9, "2"]]}})
    )
    scored = [
        {"documentUri": "file:///x%20y/w/a.ts", "edit": [[4, 9, "b = 2"]], "scoreCategory": "nextEdit", "score": 0},
        {"documentUri": "file:///x%20y/w/a.ts", "edit": [[0, 3, "var"]], "scoreCategory": "bad", "score": 0},
        {"documentUri": "file:///x%20y/w/a.ts", "edit": None, "scoreCategory": "valid", "score": 0},
    ]
    (tmp_path / "scoredEdits.w.json").write_text(json.dumps({"edits": scored}))
    return tmp_path


def test_an_edit_has_the_score_of_the_equal_candidate(folder: Path) -> None:
    scored = read_scored(folder)
    assert scored.text == "let b = 1\n"
    assert scored.score([Edit(8, 9, "2")]) == 1.0
    assert scored.score([Edit(0, 9, "let b = 2")]) == 1.0
    assert scored.score([Edit(0, 3, "var")]) == 0.0
    assert scored.score([]) == scored.score(None) == scored.score([Edit(0, 3, "let")]) == 0.1
    assert scored.score([Edit(0, 3, "new")]) is None
    assert isinstance(scored.log.events[-1], Expected)


def test_an_unknown_category_is_said(folder: Path) -> None:
    path = folder / "scoredEdits.w.json"
    path.write_text(path.read_text().replace('"bad"', '"awful"'))
    with pytest.raises(LogError, match="awful"):
        read_scored(folder)


@pytest.mark.parametrize(
    ("name", "count"),
    [("1-point.ts", 11), ("2-helloworld-sample-remove-generic-parameter", 43), ("8-cppIndividual-1-point.cpp", 25)],
)
def test_real_candidates_have_the_score_that_people_gave(name: str, count: int) -> None:
    scored = read_scored(shared(f"recordings/scored/{name}"))
    values = {"nextEdit": 1.0, "valid": 0.1, "bad": 0.0}
    assert len(scored.candidates) == count
    assert [scored.score(each.edits) for each in scored.candidates] == [
        values[each.category] for each in scored.candidates
    ]
    assert scored.log.problems == []
