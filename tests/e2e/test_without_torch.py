"""What needs no model of its own runs where torch cannot be imported: the language server, and upstreams."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
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
    with (
        served(llama_cpp(Play(tokens=("a ", "+ b")))) as upstream,
        Program(tmp_path / "lsp", command=REAL) as server,
    ):
        server.initialize(server={"upstream": upstream}, suggest={"aggressiveness": 0.0})
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
