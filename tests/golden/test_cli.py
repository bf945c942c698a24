"""What the commands print: a hole filled, and a recording replayed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests.golden.conftest import Begin, Transcript
from tests.house.pages import messages

from calomel.cli.app import program
from calomel.cli.main import main

FILES = {
    "add.py": ("def add(a, b):\n    return \n\n\nprint(add(1, 2))\n", "2:12"),
    "mean.py": ("def mean(values):\n    \n", "2:5"),
    "area.py": ("    if ok:\n        return \n", "2:16"),
    "names.py": ("import re\n\nnames = [\n", "3:10"),
    "zebra.py": ("zebra \n", "1:7"),
}
# A person who types one character after the other.
TYPED = "def add(a, b):\n    return a + b\n"
TRACE = {
    "startContent": "",
    "endContent": TYPED,
    "txns": [
        {"time": f"2024-01-01T00:00:{at // 4:02}.{at % 4 * 25:02}0Z", "patches": [[at, 0, character]]}
        for at, character in enumerate(TYPED)
    ],
}


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))

    def run(*arguments: object) -> str:
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        return capsys.readouterr().out + f"status {left.value.code or 0}"

    return run


def test_holes_are_filled_as_they_were(call: Callable[..., str], model: Path, transcript: Begin) -> None:
    found = transcript("fill")
    for name, (text, at) in FILES.items():
        Path(name).write_text(text, encoding="utf-8")
        found.heading(f"calomel fill {name} --at {at}")
        found.says("<", call("fill", name, "--at", at, "--model", model))
    found.heading("a place that is not there")
    found.says("<", call("fill", "add.py", "--at", "9:9", "--model", model))
    found.check()


def test_a_recording_is_replayed_as_it_was(call: Callable[..., str], model: Path, transcript: Begin) -> None:
    Path("trace.json").write_text(json.dumps(TRACE), encoding="utf-8")
    call("replay", "trace.json", "--latency", 50, "--seed", 3, "--model", model, "--json", "replay.json")
    found = transcript("replay")
    told = json.loads(Path("replay.json").read_text(encoding="utf-8"))
    (log,) = told["results"]
    for each in log["opportunities"]:
        offered = each["candidate"] and {name: each["candidate"][name] for name in ("edits", "maker", "outcome")}
        moment = {
            name: each[name] for name in ("entry", "kind", "silence", "computed_tokens", "cached_tokens", "steps")
        }
        found.says("<", {**moment, "offered": offered})
    found.says(
        "<", {name: value for name, value in told.items() if isinstance(value, int) or name in {"silences", "makers"}}
    )
    found.check()


# What every command prints with `--help`.
def commands(node: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for name, each in getattr(node, "commands", {}).items():
        yield from commands(each, (*words, name))


def test_help_is_what_it_was(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    transcript = Transcript("help", {})
    for words in commands(program()):
        with pytest.raises(SystemExit):
            main([*words, "--help"])
        transcript.heading(" ".join(("calomel", *words)))
        transcript.says(" ", capsys.readouterr().out)
    transcript.check()


# Every sentence that a person can see, so that a change of one is read by somebody.
# Three words in a row. What holds code, such as a pattern, is nothing that anybody reads.
_SENTENCE: Final = re.compile(r"(?:^|[\s(`*])[A-Za-z][a-z']*,? [a-z']+,? [a-z'`-]")
_CODE: Final = re.compile(
    r"\\[a-zA-Z]|\(\?|=>|</|^\s*(?:from|import|local|return|def) |function\(|: function|\); |vim\."
)


def test_messages_are_what_they_were() -> None:
    parts: dict[str, set[str]] = {}
    for path, text in messages():
        if _SENTENCE.search(text) and not _CODE.search(text):
            folder = path.split("/")
            part = folder[1] if folder[0] == "editors" else folder[0]
            parts.setdefault(part, set()).add(" ".join(text.split()))
    transcript = Transcript("messages", {})
    for part, sentences in sorted(parts.items()):
        transcript.heading(part)
        for sentence in sorted(sentences):
            transcript.says("", sentence)
    transcript.check()
