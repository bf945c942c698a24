"""`calomel fill` and `calomel try`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.conftest import Runner

from calomel.cli.fill import KINDS, Hole, bundled_samples, offset_of
from calomel.cli.output import InputError
from calomel.engine.errors import CacheFullError, InvalidRequestError
from calomel.infer.completer import Fill, FillRequest
from calomel.prompts.parts import PromptParts


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "add.py"
    file.write_text("def add(a, b):\n    return \n\n\nprint(add(1, 2))\n", encoding="utf-8")
    return file


def test_filled_text_is_shown_in_its_place(run: Runner, filler: Any, source: Path) -> None:
    before = source.read_text()
    result = run("fill", source, "--at", "2:12")
    assert result.status == 0
    assert source.read_text() == before
    assert result.out == "1 │ def add(a, b):\n2 │     return ⟦a + b⟧\n3 │ \n4 │ \n5 │ print(add(1, 2))\n"
    assert "confidence 0.75 · 4 tokens in 2 steps (3 forwards) · 12 ms · stop" in result.err
    assert filler.closed


def test_request_has_the_text_around_the_hole(run: Runner, filler: Any, source: Path) -> None:
    run(
        "fill",
        source,
        "--at",
        "2:12",
        "--max-tokens",
        9,
        "--policy",
        "fixed:2",
        "--model",
        source.parent,
        "--device",
        "meta",
    )
    expected = FillRequest(
        "fill",
        PromptParts(path="add.py", prefix="def add(a, b):\n    return ", suffix="\n\n\nprint(add(1, 2))\n"),
        max_tokens=9,
        policy="fixed:2",
        min_tokens=1,
        fitted=True,
    )
    assert [expected] == filler.requests
    assert [(source.parent, "meta")] == filler.opened


def test_json_gives_back_every_byte(run: Runner, filler: Any, source: Path) -> None:
    filler.answers = ["[bold]ü\n\t"]
    assert "return ⟦[bold]ü" in run("fill", source, "--at", "2:12").out
    answer = json.loads(run("fill", source, "--at", "2:12", "--json").out)
    assert answer["text"] == "[bold]ü\n\t"
    assert (answer["path"], answer["at"], answer["to"]) == ("add.py", "2:12", "2:12")
    assert (answer["confidence"], answer["steps"], answer["seconds"]) == (0.75, 2, 0.012)


@pytest.mark.parametrize(
    ("error", "status"), [(InvalidRequestError("no policy is named 'fast'"), 2), (CacheFullError("no page is free"), 1)]
)
def test_refusal_of_the_engine_becomes_one_line(
    run: Runner, filler: Any, source: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def refuse(_: FillRequest) -> Fill:
        raise error

    monkeypatch.setattr(filler, "fill", refuse)
    result = run("fill", source, "--at", "2:12")
    assert result.status == status
    assert result.err.startswith(f"calomel: {error}")
    assert result.err.count("\n") == 1


@given(st.text(alphabet="ab\n\tü😀"), st.data())
def test_every_place_of_a_text_is_found_again(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    before = text[:offset].split("\n")
    assert offset == offset_of(text, f"{len(before)}:{len(before[-1]) + 1}", "--at")


@pytest.mark.parametrize(
    "wrong", ["", "3", "3:", ":3", "0:1", "1:0", "00:1", "-1:2", "1:2:3", "a:b", "²:1", "1234567890:1"]
)
def test_malformed_place_names_the_option(wrong: str) -> None:
    with pytest.raises(InputError, match=r"--at .*LINE:COLUMN"):
        offset_of("", wrong, "--at")


def test_line_endings_stay_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "dos.py"
    file.write_bytes(b"a = 1\r\nb = \r\n")
    hole = Hole.in_file(file, "2:5")
    assert (hole.prefix, hole.suffix) == ("a = 1\r\nb = ", "\r\n")


def test_model_is_told_no_folder_outside_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src").mkdir()
    file = tmp_path / "src" / "a.py"
    file.write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert Hole.in_file(file, "1:1").path == "src/a.py"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert Hole.in_file(file, "1:1").path == "a.py"


@pytest.mark.e2e
def test_try_shows_every_sample_and_ends_well() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "calomel.cli", "try"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for sample in bundled_samples():
        assert sample.path in done.stdout
    near, far = ([each for each in bundled_samples() if each.kind == kind] for kind in KINDS)
    assert f"of {len(near)} are what the author wrote where the surrounding lines show what follows" in done.stdout
    assert f"of {len(far)} are what the author wrote where the surrounding lines do not give it away" in done.stdout
    assert "right: the person wrote this next" in done.stdout
    assert "Larger models that fit this machine" in done.stdout


def test_right_and_wrong_answers_are_told_apart_by_a_model_that_sees_neither(run: Runner, filler: Any) -> None:
    samples = bundled_samples()
    right = [sample.expected for sample in samples]
    filler.answers = ["warm up", right[0], "nonsense", *right[2:]]
    result = run("try")
    assert (result.status, filler.closed) == (0, True)
    asked = [(each.parts.path, each.parts.prefix, each.parts.suffix) for each in filler.requests[1:]]
    assert asked == [(sample.path, sample.prefix, sample.suffix) for sample in samples]
    assert len(samples) - 1 == result.out.count("as the author wrote\n")
    assert f"the author wrote {right[1]}" in result.out
    counts = re.findall(r"(\d+) of (\d+) are what the author wrote", result.out)
    near = sum(sample.kind == "near" for sample in samples)
    assert counts == [(str(near - 1), str(near)), (str(len(samples) - near),) * 2]
