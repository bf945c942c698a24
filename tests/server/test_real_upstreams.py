"""Real servers behind the door, with tiny random models: llama.cpp, `llama_cpp.server`, and `transformers serve`."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.families.published.autoregressive import QWEN2
from tests.server import _upstreams as played
from tests.server._llama_cpp import SERVING, SPECIAL, Llama, packages, ready
from tests.server._upstreams import Play, served
from tests.server.conftest import TOKEN, listening, until, upstream_app

from calomel.infer.completer import CompleteAnswer, CompleteRequest
from calomel.infer.upstream.completer import UpstreamCompleter
from calomel.infer.upstream.exchange import Target
from calomel.infer.wire import COMPLETE_PATH, decode, encode
from calomel.prompts.parts import EditRegion, Excerpt, PromptParts

HEADERS = {"authorization": f"Bearer {TOKEN}"}

pytestmark = pytest.mark.slow


@pytest.fixture
def llama(tmp_path: Path) -> Iterator[Llama]:
    started = Llama(tmp_path)
    yield started
    started.end()


@pytest.fixture
def asked() -> Iterator[Any]:
    """A client of a server that asks the one at an address."""
    with ExitStack() as stack:

        def open_(url: str, **more: Any) -> httpx.Client:
            host, port = stack.enter_context(listening(upstream_app(url, **more)))
            return stack.enter_context(
                httpx.Client(base_url=f"http://{host}:{port}", headers=HEADERS, trust_env=False, timeout=60)
            )

        yield open_


SHORT = {"model": "m", "prompt": "x = ", "suffix": "\n", "max_tokens": 8}


def test_a_real_llama_cpp_fills_holes_streams_and_says_how_sure_it_is(llama: Any, asked: Any) -> None:
    client = asked(llama(key="k-1"), upstream_key="k-1")
    parts = PromptParts(
        (Excerpt("lib.py", 0, "LIMIT = 3\n"),), path="a.py", prefix="def f(n):\n    return ", suffix="\n"
    )
    request = CompleteRequest("fill", parts, max_tokens=12)

    said = client.post(COMPLETE_PATH, content=encode(request), headers={"content-type": "application/json"})
    answer = decode(said.content, CompleteAnswer)
    with client.stream("POST", "/v1/fim/completions", json=SHORT | {"stream": True}) as stream:
        lines = [line for line in stream.iter_lines() if line]

    (own,) = answer.candidates
    assert own.text
    assert 0 < len(own.log_probs) <= 12
    assert max(own.log_probs) <= 0
    # The extra file is among the tokens, a byte each: repository and path are, too.
    assert answer.context_tokens > len("LIMIT = 3\ndef f(n):\n    return \n")
    note = client.get("/calomel/v1/status").json()["model"]["note"]
    assert "it gives log-probabilities" in note
    assert (stream.status_code, lines[-1]) == (200, "data: [DONE]")


def test_with_a_draft_model_a_real_llama_cpp_says_of_some_tokens_only_how_sure_it_is(llama: Any, asked: Any) -> None:
    client = asked(llama(drafts=True))
    request = CompleteRequest("fill", PromptParts(path="a.py", prefix="x = ", suffix="\n"), max_tokens=12)

    said = client.post(COMPLETE_PATH, content=encode(request), headers={"content-type": "application/json"})

    (own,) = decode(said.content, CompleteAnswer).candidates
    assert (len(own.text) > 1, own.log_probs) == (True, ())
    note = client.get("/calomel/v1/status").json()["model"]["note"]
    assert "it gives log-probabilities for some tokens only" in note


def test_a_question_that_is_cancelled_leaves_the_server_to_the_next(llama: Any, asked: Any) -> None:
    client = asked(llama())
    with pytest.raises(httpx.ReadTimeout):
        client.post("/v1/fim/completions", json=SHORT | {"max_tokens": 3500, "stop": ["<none>"]}, timeout=1)

    assert client.post("/v1/fim/completions", json=SHORT, timeout=10).status_code == 200


def test_a_real_llama_cpp_that_ends_and_returns_is_asked_again(llama: Any, asked: Any) -> None:
    url = llama()
    client = asked(url)
    assert client.post("/v1/fim/completions", json=SHORT).status_code == 200
    llama.end()
    gone = client.post("/v1/fim/completions", json=SHORT)
    llama(port=int(url.rpartition(":")[2]))

    assert (gone.status_code, gone.json()["error"]["code"]) == (503, "upstream_failed")
    assert client.post("/v1/fim/completions", json=SHORT).status_code == 200


def test_tokens_that_a_real_llama_cpp_does_not_know_are_found(llama: Any, asked: Any) -> None:
    client = asked(llama(special=("<[end▁of▁sentence]>", "<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>")))

    assert client.post("/v1/fim/completions", json=SHORT).json()["usage"]["completion_tokens"] > 0


def test_a_real_llama_cpp_without_tokens_of_a_hole_continues_the_text_before_it(llama: Any, asked: Any) -> None:
    client = asked(llama(special=SPECIAL[:1]))

    assert client.post("/v1/fim/completions", json=SHORT).json()["usage"]["completion_tokens"] > 0
    assert "it has no fill-in-the-middle tokens" in client.get("/calomel/v1/status").json()["model"]["note"]


def test_transformers_serve_fills_holes_though_it_lists_no_models_and_tells_no_probabilities(
    asked: Any, tmp_path: Path
) -> None:
    folder = QWEN2.write(tmp_path / "qwen2.5-coder")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("transformers")
    command = [str(program), "serve", "--host", "127.0.0.1", "--port", str(port), "--device", "cpu", str(folder)]
    surroundings = {**packages(*SERVING), "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "none")}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, env=surroundings, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        until(lambda: ready(url, process), 120)
        client = asked(url, upstream_model=str(folder))
        answers = [client.post("/v1/fim/completions", json=SHORT | {"prompt": f"x = {n}"}).json() for n in range(8)]
        note = client.get("/calomel/v1/status").json()["model"]["note"]
    finally:
        process.kill()
        process.wait()

    # Random tokens: some of them end a line at once.
    assert any(answer["choices"][0]["text"] for answer in answers)
    assert "it gives no log-probabilities" in note


# Of `inceptionai` of PyPI, the makers' own client; what its library adds is none of the service's.
PARAMETERS = """
import inspect, json
from inceptionai.resources.edit.completions import CompletionsResource as Edit
from inceptionai.resources.fim.completions import CompletionsResource as Fim
own = {"self", "extra_headers", "extra_query", "extra_body", "timeout"}
print(json.dumps([sorted(inspect.signature(each.create).parameters.keys() - own) for each in (Fim, Edit)]))
"""


@pytest.mark.slow
def test_no_field_is_sent_that_the_makers_own_client_does_not_know() -> None:
    surroundings = packages("inceptionai", "inceptionai==0.3.0", "sniffio", "distro")
    ran = subprocess.run(
        [sys.executable, "-c", PARAMETERS], capture_output=True, text=True, env=surroundings, check=True
    )
    fim, edit = json.loads(ran.stdout)
    play = Play(region="```\nx = 2\n```")
    hole = PromptParts(path="a.py", prefix="x = ", suffix="\n")
    region = PromptParts(path="a.py", region=EditRegion("x = 1\n", 4))

    async def ask(url: str) -> None:
        completer = UpstreamCompleter(Target(url, "mercury"))
        await completer.complete(CompleteRequest("fill", hole, max_tokens=16))
        await completer.complete(CompleteRequest("edit", region, max_tokens=16))
        await completer.aclose()

    with served(played.mercury(play)) as url:
        asyncio.run(ask(url))

    sent = {path: set(body) for path, body in play.asked if body}
    assert sent["/v1/fim/completions"] <= set(fim)
    assert sent["/v1/edit/completions"] <= set(edit)
