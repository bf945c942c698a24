from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calomel.engine.errors import CacheFullError, UnknownPolicyError
from calomel.prompts.parts import PromptParts
from calomel.suggest.completer import Fill, FillRequest

Run = Callable[..., Any]
Filler = Any


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "add.py"
    file.write_text("def add(a, b):\n    return \n\n\nprint(add(1, 2))\n", encoding="utf-8")
    return file


def test_filled_text_is_shown_in_its_place(run: Run, filler: Filler, source: Path) -> None:
    result = run("fill", source, "--at", "2:12")
    assert result.status == 0
    assert result.out == "1 │ def add(a, b):\n2 │     return ⟦a + b⟧\n3 │ \n4 │ \n5 │ print(add(1, 2))\n"
    assert "confidence 0.75 · 4 tokens in 2 steps (3 forwards) · 12 ms · stop" in result.err
    assert filler.closed


def test_request_has_the_text_around_the_hole(run: Run, filler: Filler, source: Path) -> None:
    run("fill", source, "--at", "2:12", "--max-tokens", 9, "--policy", "fixed:2", "--model", "m", "--device", "meta")
    expected = FillRequest(
        "fill",
        PromptParts(path="add.py", prefix="def add(a, b):\n    return ", suffix="\n\n\nprint(add(1, 2))\n"),
        max_tokens=9,
        policy="fixed:2",
        min_tokens=1,
        fitted=True,
    )
    assert [expected] == filler.requests
    assert [(Path("m"), "meta")] == filler.opened


def test_json_gives_back_every_byte(run: Run, filler: Filler, source: Path) -> None:
    filler.answers = ["[bold]ü\n\t"]
    answer = json.loads(run("fill", source, "--at", "2:12", "--json").out)
    assert answer["text"] == "[bold]ü\n\t"
    assert (answer["path"], answer["at"], answer["to"]) == ("add.py", "2:12", "2:12")
    assert (answer["confidence"], answer["steps"], answer["seconds"]) == (0.75, 2, 0.012)


def test_square_brackets_in_code_are_no_markup(run: Run, filler: Filler, source: Path) -> None:
    filler.answers = ["[red]x[/red]"]
    assert "return ⟦[red]x[/red]⟧" in run("fill", source, "--at", "2:12").out


def test_file_is_left_as_it_was(run: Run, filler: Filler, source: Path) -> None:
    before = source.read_bytes()
    run("fill", source, "--at", "2:12")
    assert before == source.read_bytes()


@pytest.mark.parametrize(
    ("error", "status"), [(UnknownPolicyError("no policy is named 'fast'"), 2), (CacheFullError("no page is free"), 1)]
)
def test_refusal_of_the_engine_becomes_one_line(
    run: Run, filler: Filler, source: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def refuse(_: FillRequest) -> Fill:
        raise error

    monkeypatch.setattr(filler, "fill", refuse)
    result = run("fill", source, "--at", "2:12")
    assert result.status == status
    assert result.err.startswith(f"calomel: {error}")
    assert result.err.count("\n") == 1


def test_missing_file_ends_with_status_2(run: Run, filler: Filler, tmp_path: Path) -> None:
    result = run("fill", tmp_path / "absent.py", "--at", "1:1")
    assert result.status == 2
    assert "absent.py: No such file" in result.err
    assert filler.opened == []


def test_folder_without_a_checkpoint_ends_with_status_2(run: Run, source: Path, tmp_path: Path) -> None:
    result = run("fill", source, "--at", "2:12", "--model", tmp_path / "nothing")
    assert result.status == 2
    assert "nothing" in result.err


def test_device_that_is_not_there_ends_with_status_2(run: Run, filler: Filler, source: Path) -> None:
    result = run("fill", source, "--at", "2:12", "--device", "cuda:99")
    assert result.status == 2
    assert result.err.startswith("calomel: --device cuda:99 cannot be used here: ")
    assert filler.opened == []
