"""Another model is chosen, with the real server between: until it answers the old one stays."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.editors.shared import no_server_stays
from tests.lsp.program import REAL, Program
from tests.server._upstreams import Play, llama_cpp, served

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Program]:
    with no_server_stays(tmp_path), Program(tmp_path, REAL) as program:
        program.initialize(extensions=True)
        until = time.monotonic() + 60
        while command(program, "status")["state"] != "ready":
            assert time.monotonic() < until
            time.sleep(0.1)
        yield program


def command(editor: Program, name: str, *arguments: Any) -> Any:
    return editor.ask("workspace/executeCommand", {"command": f"calomel.{name}", "arguments": list(arguments)})


def test_why_a_model_does_not_answer_is_told_whoever_of_them_noticed_it(editor: Program, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2"}))
    with served(llama_cpp(Play(key="secret"))) as keyed:
        for choice, why in (
            (
                {"upstream": "http://127.0.0.1:9"},
                "no server answers at http://127.0.0.1:9: start it, or correct upstream.",
            ),
            ({"upstream": keyed}, f"the server at {keyed} requires a key: set upstream_key_file"),
            ({"model": "nowhere"}, "found no model nowhere in "),
            ({"model": str(tmp_path)}, "the model did not load: config.json"),
        ):
            answer = command(editor, "useModel", choice)
            assert answer["model"] is None
            assert answer["message"].startswith(
                "calomel-nano stays in use, because the other model does not answer: " + why
            )
        assert command(editor, "status")["model"] == "calomel-nano"
        assert command(editor, "status")["state"] == "ready"


def test_one_that_answers_takes_over_and_gives_back(editor: Program) -> None:
    with served(llama_cpp(Play())) as url:
        answer = command(editor, "useModel", {"upstream": url})
        assert answer["message"] == f"Qwen2.5-Coder-1.5B-Q8_0 is ready. It answers through llama.cpp at {url}."
        assert command(editor, "useModel", {"model": "nano"})["message"] == (
            "calomel-nano is ready. It runs on this machine's CPU."
        )
