"""The real programs before an upstream: where torch cannot be imported, and while another model is chosen."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.editors.shared import no_server_stays
from tests.lsp.editor import inline_params, open_params
from tests.lsp.program import REAL, Program
from tests.server._upstreams import Play, llama_cpp, served
from tests.server.program import program

pytestmark = pytest.mark.e2e


@pytest.fixture
def without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A path for Python on which torch is a module that fails."""
    for name in ("torch", "transformers", "flash_attn"):
        (tmp_path / "absent" / name).mkdir(parents=True)
        (tmp_path / "absent" / name / "__init__.py").write_text(
            f"raise ModuleNotFoundError('no {name}', name='{name}')"
        )
    path = os.pathsep.join([str(tmp_path / "absent"), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", path)
    return path


def test_the_language_server_starts_and_answers(tmp_path: Path, without_torch: str) -> None:
    (tmp_path / "lsp").mkdir()
    with Program(tmp_path / "lsp", command=REAL) as server:
        found = server.initialize(suggest={"enabled": False})
        assert "inlineCompletionProvider" in found["capabilities"]
        server.notify("textDocument/didOpen", open_params("x = \n"))
        said = server.ask("workspace/executeCommand", {"command": "calomel.status", "arguments": []})
        assert isinstance(said, dict)


def test_the_language_server_asks_an_upstream_by_itself(tmp_path: Path, without_torch: str) -> None:
    (tmp_path / "lsp").mkdir()
    with served(llama_cpp(Play(tokens=("a ", "+ b")))) as upstream, Program(tmp_path / "lsp", command=REAL) as server:
        server.initialize(backend={"upstream": upstream}, suggest={"aggressiveness": 0.0})
        server.notify("textDocument/didOpen", open_params("def add(a, b):\n    return \n"))
        found = server.ask("textDocument/inlineCompletion", inline_params(1, 11))
        children = psutil.Process(server.process.pid).children()
    assert found["items"][0]["insertText"] == "a + b"
    assert children == []
    assert list((tmp_path / "lsp" / "runtime").rglob("*.json")) == []


def test_a_server_with_an_upstream_fills_a_hole(tmp_path: Path, without_torch: str) -> None:
    with served(llama_cpp(Play(tokens=("return ", "n * 2")))) as upstream:
        more = ["--upstream", upstream, "--no-config"]
        with program(tmp_path, *more, model=None, PYTHONPATH=without_torch) as (_, client):
            body = {"model": "mercury-coder", "prompt": "def double(n):\n    ", "suffix": "\n", "max_tokens": 16}
            answer = client.post("/v1/fim/completions", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["text"].startswith("return n * 2")


# Another model is chosen, with the real server between: until it answers the old one stays.
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


@pytest.mark.e2e
@pytest.mark.slow
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
            assert answer["message"].startswith(f"nano stays in use: {why}")
        assert command(editor, "status")["model"] == "nano"
        assert command(editor, "status")["state"] == "ready"


@pytest.mark.e2e
@pytest.mark.slow
def test_one_that_answers_takes_over_and_gives_back(editor: Program) -> None:
    with served(llama_cpp(Play())) as url:
        answer = command(editor, "useModel", {"upstream": url})
        assert answer["message"] == f"Qwen2.5-Coder-1.5B-Q8_0 is ready. It answers through llama.cpp at {url}."
        assert command(editor, "useModel", {"model": "nano"})["message"] == (
            "nano is ready. It runs on this machine's CPU."
        )
