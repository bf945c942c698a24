"""What reaches a terminal: text of others cannot control it, and is written whatever it holds."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Runner
from tests.training.sources import Commits

from calomel.cli import output

CLI = Path(output.__file__).parent
# Colours, a title, a line that is written again, C1 controls, directions, half a pair.
EVIL = "\x1b[31m\x1b]0;t\x07\r\x08\x7f\x9b2J\u202e\ud800"
SEEN = "␛[31m␛]0;t␇␍␈␡\ufffd2J\ufffd\ufffd"


def test_one_helper_prints_text_and_shows_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    output.say(f"a\tb\n{EVIL}é", err=True)
    output.console().print(f"{EVIL}é")
    printed = capsys.readouterr()
    assert printed.err == f"a\tb\n{SEEN}é\n"
    assert printed.out.replace("\n", "").isprintable()
    assert printed.out.startswith("␛[31m␛]0;t")


@pytest.mark.parametrize("path", sorted(CLI.glob("*.py")), ids=lambda path: path.name)
def test_no_command_prints_past_it(path: Path) -> None:
    calls = [each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, ast.Call)]
    past = [ast.unparse(each) for each in calls if ast.unparse(each.func) in {"print", "typer.echo", "Console"}]
    allowed = {"output.py": 1, "fill.py": 1}
    assert len(past) == allowed.get(path.name, 0), past
    assert all("visible" in each or "json.dumps" in each for each in past)


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commits:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    repository = Commits(tmp_path / "repository\x1b[31m")
    for text in ("1", "2"):
        names = ("a\x1b[31m.lock", "b\r\x9b\u202e.py", "c\n.min.js")
        repository.commit(f"s\r\x1b[2J{text}", dict.fromkeys(names, f"x = {text}\n"), author="a\x1bb")
    return repository


@pytest.mark.parametrize(
    "command",
    [
        lambda folder: ("replay", "--git", folder, "--recorded-assistant"),
        lambda folder: ("replay", folder / "no\x1b[31m"),
        lambda folder: ("doctor", folder / "a\x1b[31m.lock"),
        lambda folder: ("doctor", "--config", folder / "a\x1b[31m.lock"),
        lambda folder: ("fill", folder / "no\x1b[31m", "--at", "1:1"),
        lambda folder: ("stats", "--log", folder / "no\x1b[31m"),
        lambda folder: ("config", "show", "--config", folder / "a\x1b[31m.lock"),
        lambda folder: ("config", "path", "--config", folder / "a\x1b[31m.lock"),
        lambda folder: ("calibrate", "--log", folder / "no\x1b[31m", "--out", folder / "x\x1b[31m"),
    ],
)
def test_a_name_of_a_file_controls_no_terminal(
    run: Runner, home: Path, evil: Commits, monkeypatch: pytest.MonkeyPatch, command: Callable[[Path], tuple[str, ...]]
) -> None:
    monkeypatch.setattr("calomel.cli.checks.measured", lambda _: None)
    done = run(*command(evil.folder))
    assert "[31m" in done.out + done.err
    assert not {"\x1b", "\r", "\x9b", "\u202e"} & set(done.out + done.err)


def test_json_of_an_answer_holds_every_character_and_controls_no_terminal(
    run: Runner, filler: object, tmp_path: Path
) -> None:
    filler.answers = ["\x1b[31m\x7f\x9b\u202eé"]  # type: ignore[attr-defined]
    file = tmp_path / "a.py"
    file.write_text("x = \n")
    printed = run("fill", file, "--at", "1:5", "--json").out
    assert json.loads(printed)["text"] == "\x1b[31m\x7f\x9b\u202eé"
    assert printed.strip().isascii()
    assert printed.strip().isprintable()
