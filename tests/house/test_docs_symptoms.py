"""What the programs say when something is odd stands on the page that says what to do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house.pages import ROOT

from calomel.suggest.silence import SilenceReason

PAGE = " ".join((ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8").split())
CHECKS = [ROOT / "server/calomel/cli" / name for name in ("checks.py", "editor_checks.py")]
STARTS = [
    *(ROOT / "server/calomel/server" / name for name in ("run.py", "replicas.py", "tokens.py")),
    *(ROOT / "lsp/calomel/suggest" / name for name in ("launch.py", "remote.py")),
]


@pytest.mark.parametrize("reason", list(SilenceReason))
def test_every_silence_is_explained(reason: SilenceReason) -> None:
    assert reason.message in PAGE


def calls(path: Path, names: set[str]) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node


@pytest.mark.parametrize("path", CHECKS, ids=lambda path: path.name)
def test_every_line_of_the_doctor_is_named(path: Path) -> None:
    subjects = {
        call.args[0].value
        for call in calls(path, {"ok", "warn", "fail"})
        if call.args and isinstance(call.args[0], ast.Constant)
    }
    assert [subject for subject in sorted(map(str, subjects)) if subject not in PAGE] == []


def fragments(call: ast.Call) -> list[str]:
    """The constant parts of the message, the longest first."""
    message = call.args[-1]
    parts = message.values if isinstance(message, ast.JoinedStr) else [message]
    texts = [str(part.value).strip(" :(),") for part in parts if isinstance(part, ast.Constant)]
    return sorted(texts, key=len, reverse=True)


@pytest.mark.parametrize("path", STARTS, ids=lambda path: path.name)
def test_every_failure_of_a_server_is_explained(path: Path) -> None:
    messages = [fragments(call) for call in calls(path, {"StartError", "CompleterError"})]
    longest = [found[0] for found in messages if found and len(found[0]) > len("cannot be")]
    assert [text for text in longest if not any(text[:length] in PAGE for length in (len(text), 24))] == []
