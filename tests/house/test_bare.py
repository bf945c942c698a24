"""Calomel without its engine: an interpreter in which PyTorch and what comes with it cannot be imported."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.lsp.editor import change_params, edit_params, inline_params, open_params, span
from tests.lsp.program import REAL, Program, environment
from tests.server._upstreams import Play, llama_cpp, served

from calomel.infer.extras import has_engine

ADD = "def add(a, b):\n    \n"
RENAMED = "def total(prices):\n    return sum(prices)\n\n\ndef show(prices):\n    print(total(prices))\n"
# As if they were not installed: for `find_spec` too, and in processes that are started.
ABSENT = """
import sys
from importlib.machinery import PathFinder

NAMES = {"torch", "transformers", "safetensors", "tokenizers", "llguidance", "huggingface_hub", "gguf", "scipy"}


class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in NAMES else super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, in which every Python is without the engine."""
    (tmp_path / "sitecustomize.py").write_text(ABSENT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


@pytest.fixture
def upstream() -> Iterator[str]:
    with served(llama_cpp(Play(tokens=("return ", "a + ", "b")))) as url:
        yield url


def calomel(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "calomel.cli", *words]
    env = environment(folder) | {"HOME": str(folder), "COLUMNS": "200"}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)


def installs(said: str) -> bool:
    """Whether it names two commands for this environment, and the setting or the option in their place."""
    commands = re.findall(rf"`{re.escape(sys.executable)} -m pip install 'calomel\[([a-z,]+)\]'", said)
    return commands == ["engine", "llama"] and "upstream" in said


def test_the_interpreter_has_no_engine(bare: Path) -> None:
    assert has_engine()
    script = "from calomel.infer.extras import has_engine; print(has_engine())"
    done = subprocess.run([sys.executable, "-c", script], env=environment(bare), capture_output=True, check=True)
    assert done.stdout == b"False\n"


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["models", "list"],
        ["models", "recommend"],
        ["models", "families", "--guide"],
        ["stats"],
        ["config", "show"],
        ["editor", "setup", "helix"],
    ],
    ids=" ".join,
)
def test_what_needs_no_model_works(bare: Path, words: list[str]) -> None:
    done = calomel(bare, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_models_of_others_are_listed(bare: Path) -> None:
    folder = bare / "xdg_data_home" / "calomel" / "models" / "theirs"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "qwen2"}', encoding="utf-8")
    (folder / "model.safetensors").touch()
    done = calomel(bare, "models", "list")
    assert (done.returncode, done.stderr) == (0, "")
    assert "theirs" in done.stdout


def test_the_first_steps_claim_no_model_that_is_not_there(bare: Path) -> None:
    said = calomel(bare).stdout
    assert "No model is installed." in said
    assert "calomel models recommend" in said
    assert f"{sys.executable} -m pip install 'calomel[engine]'" in said
    assert "calomel try" not in said
    listed = calomel(bare, "models", "list").stdout
    assert "needs Calomel's extra engine" in listed
    assert (
        "It does not answer now: Calomel's own engine is not installed" in calomel(bare, "models", "use", "nano").stdout
    )


@pytest.mark.parametrize("words", [["try"], ["fill", "a.py", "--at", "1:1"]], ids=" ".join)
def test_what_asks_the_choice_names_two_commands(bare: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bare)
    (bare / "a.py").write_text(ADD, encoding="utf-8")
    done = calomel(bare, *words)
    assert done.returncode == 1
    error, advice = done.stderr.splitlines()
    assert error == "error: no model is installed"
    assert re.findall(r"`([^`]+)`", advice) == [
        advice.partition("`")[2].partition("`")[0],
        "calomel models use",
        "calomel models recommend",
    ]
    assert advice.startswith(f"try: run `{sys.executable} -m pip install 'calomel[engine]'")


def test_serve_says_how_to_get_a_model(bare: Path) -> None:
    done = calomel(bare, "serve", "--port", "0")
    assert done.returncode == 1
    assert done.stderr.startswith("error: no model is installed")
    assert installs(done.stderr)


def test_a_chosen_server_is_asked_without_an_option(bare: Path, upstream: str) -> None:
    (bare / "a.py").write_text(ADD, encoding="utf-8")
    assert calomel(bare, "models", "use", "--upstream", upstream).returncode == 0
    done = calomel(bare, "fill", str(bare / "a.py"), "--at", "2:5", "--json")
    assert (done.returncode, json.loads(done.stdout)["text"]) == (0, "return a + b")
    said = calomel(bare).stdout
    assert f"Your editors ask the model at {upstream}." in said
    assert "calomel try" in said


def test_a_gap_is_filled_by_an_upstream(bare: Path, upstream: str) -> None:
    (bare / "a.py").write_text(ADD, encoding="utf-8")
    done = calomel(bare, "fill", str(bare / "a.py"), "--at", "2:5", "--upstream", upstream, "--json")
    assert (done.returncode, json.loads(done.stdout)["text"]) == (0, "return a + b")
    tried = calomel(bare, "try", "--upstream", upstream, "--seconds", "1")
    assert (tried.returncode, tried.stderr) == (0, "")


def test_doctor_asks_an_upstream_and_names_what_is_missing(bare: Path, upstream: str) -> None:
    alone = calomel(bare, "doctor")
    assert alone.returncode == 1
    assert "fail  editors' model: none is installed" in alone.stdout
    assert installs(alone.stdout.partition("editors' model: ")[2])
    assert "could not be checked" not in alone.stdout
    settings = bare / "xdg_config_home" / "calomel" / "calomel.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'[backend]\nupstream = "{upstream}"\n', encoding="utf-8")
    asked = calomel(bare, "doctor")
    assert asked.returncode == 0, asked.stdout
    assert "warn  model: none is installed" in asked.stdout
    assert "ok    speed" in asked.stdout


def test_serve_answers_with_an_upstream(bare: Path, upstream: str) -> None:
    runtime = bare / "runtime" / "server.json"
    words = ["serve", "--upstream", upstream, "--port", "0", "--runtime-file", str(runtime)]
    command = [sys.executable, "-m", "calomel.cli", *words]
    with subprocess.Popen(command, env=environment(bare), stdout=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + 30
            while not runtime.exists() and time.monotonic() < until:
                time.sleep(0.02)
            record = json.loads(runtime.read_text(encoding="utf-8"))
            body = {"model": "any", "prompt": "def add(a, b):\n    ", "suffix": "\n"}
            with httpx.Client(base_url=record["url"], trust_env=False, timeout=20) as client:
                client.headers["authorization"] = f"Bearer {record['token']}"
                while client.get("/health").json()["status"] == "loading" and time.monotonic() < until:
                    time.sleep(0.02)
                answer = client.post("/v1/fim/completions", json=body)
                schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
                refused = client.post("/v1/fim/completions", json=body | {"response_format": schema})
            assert answer.json()["choices"][0]["message"]["content"] == "return a + b"
            assert refused.status_code == httpx.codes.BAD_REQUEST
            assert "without Calomel's own engine" in refused.json()["error"]["message"]
        finally:
            server.terminate()


def test_an_editor_gets_text_from_an_upstream(bare: Path, upstream: str) -> None:
    suggest = {"debounce_seconds": 0.0, "aggressiveness": 0.0}
    with Program(bare, REAL) as program:
        program.initialize(backend={"upstream": upstream}, suggest=suggest)
        program.notify("textDocument/didOpen", open_params(ADD))
        (item,) = program.ask("textDocument/inlineCompletion", inline_params(1, 4))["items"]
        assert item["insertText"] == "return a + b"


def test_an_upstream_is_enough_for_renames(bare: Path, upstream: str) -> None:
    suggest = {"debounce_seconds": 0.0, "aggressiveness": 0.0}
    with Program(bare, REAL) as program:
        program.initialize(extensions=True, backend={"upstream": upstream}, suggest=suggest)
        program.notify("textDocument/didOpen", open_params(RENAMED))
        program.ask("textDocument/inlineCompletion", inline_params(1, 4))
        program.notify("textDocument/didChange", change_params(2, {"range": span(0, 4, 9), "text": "amount"}))
        (edit,) = program.ask("textDocument/copilotInlineEdit", edit_params(0, 10, 2))["edits"]
    assert (edit["range"], edit["text"]) == (span(5, 10, 15), "amount")


def test_an_editor_without_a_model_is_told_how_to_get_one(bare: Path) -> None:
    with Program(bare, REAL) as program:
        program.initialize(extensions=True)
        program.notify("textDocument/didOpen", open_params(RENAMED))
        assert program.ask("textDocument/copilotInlineEdit", edit_params(0, 10, 1))["edits"] == []
        command, until = {"command": "calomel.status", "arguments": []}, time.monotonic() + 20
        while (state := program.ask("workspace/executeCommand", command))["state"] == "loading":
            assert time.monotonic() < until
            time.sleep(0.02)
    assert installs(state["message"])
