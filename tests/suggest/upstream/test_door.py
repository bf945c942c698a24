"""A published folder without weights behind the HTTP door: its model is served elsewhere."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient
from tests.server.conftest import TOKEN, until
from tests.suggest.upstream.served import Asked, Vllm, reply, serving

from calomel.engine import CheckpointError
from calomel.families.family import OpenOptions
from calomel.prompts.parts import EditRegion, PromptParts
from calomel.prompts.published import PublishedTokenizer
from calomel.server.app import create_app
from calomel.server.errors import StartError
from calomel.server.run import serve
from calomel.server.settings import ServerSettings
from calomel.suggest.completer import CANVAS, CompleteRequest, Draft
from calomel.suggest.opening import open_filler, open_folder
from calomel.suggest.upstream.target import Upstream
from calomel.suggest.wire import decode_answer, encode_request

JSON = {"content-type": "application/json"}
SAYS = "return a + b\n```"


class Broken:
    """vLLM until `broken` is set; then it fails."""

    def __init__(self, vllm: Vllm) -> None:
        self.vllm = vllm
        self.broken = False

    async def __call__(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if self.broken:
            writer.write(reply(500, {"error": {"message": "the prompt was SECRET"}}))
        else:
            await self.vllm(asked, writer)


@pytest.fixture(scope="module")
def upstream(tokenizer: PublishedTokenizer) -> Iterator[tuple[Broken, str]]:
    server = Broken(Vllm(tokenizer, SAYS))
    with serving(server) as url:
        yield server, url


@pytest.fixture(scope="module")
def door(folder: Path, upstream: tuple[Broken, str]) -> Iterator[TestClient]:
    _, url = upstream
    settings = ServerSettings(token=SecretStr(TOKEN), model=folder, outcome_log=False, upstream=url)
    app = create_app(settings, lambda: open_filler(folder, upstream=Upstream(url)))
    headers = {"authorization": f"Bearer {TOKEN}"}
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        until(lambda: app.state.door.loader.state in {"ready", "failed"}, 60)
        yield client


def test_a_hole_is_filled_whole_and_as_a_stream(door: TestClient, upstream: tuple[Broken, str]) -> None:
    body = {"model": "m", "prompt": "def add(a, b):\n    ", "suffix": "\n", "max_tokens": 32}

    answer = door.post("/v1/fim/completions", json=body)
    stream = door.post("/v1/fim/completions", json={**body, "stream": True})

    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["text"] == "return a + b"
    assert answer.json()["choices"][0]["finish_reason"] == "stop"
    assert stream.status_code == 200
    assert "error" not in stream.text
    asked = upstream[0].vllm.asked[-1].body
    assert upstream[0].vllm.tokenizer.decode(asked["prompt"]).count("def add(a, b):") == 1


def test_a_region_is_rewritten_and_a_draft_stands_behind_it_unjudged(door: TestClient) -> None:
    region = EditRegion("    return a\n", 12)
    parts = PromptParts(path="add.py", prefix="def add(a, b):\n", suffix="\nadd(1, 2)\n", region=region)
    asked = CompleteRequest("edit", parts, max_tokens=24, drafts=(Draft("    return b\n", "rename"),))

    answer = door.post("/calomel/v1/complete", content=encode_request(asked), headers=JSON)

    assert answer.status_code == 200, answer.text
    told = decode_answer(answer.content)
    own, draft = told.candidates
    assert not told.judged
    assert (own.maker, own.text.strip()) == (CANVAS, "return a + b")
    assert own.log_probs
    assert set(own.log_probs) == {-0.25}
    assert (draft.maker, draft.log_prob) == ("rename", None)


def test_a_conversation_goes_on(door: TestClient) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Add."}], "max_tokens": 32}

    answer = door.post("/v1/chat/completions", json=body)

    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["content"] == SAYS


def test_an_answer_of_a_prescribed_form_is_refused_by_name(door: TestClient) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    body = {"model": "m", "messages": [{"role": "user", "content": "Add."}], "response_format": form}

    answer = door.post("/v1/chat/completions", json=body)

    assert answer.status_code == 400, answer.text
    assert "upstream" in answer.json()["error"]["message"]


def test_the_status_page_says_where_prompts_go(door: TestClient, upstream: tuple[Broken, str]) -> None:
    host = upstream[1].removeprefix("http://")

    assert door.get("/calomel/v1/status").json()["model"]["upstream"] == host
    assert host not in door.get("/metrics").text


@pytest.fixture
def broken(upstream: tuple[Broken, str]) -> Iterator[None]:
    upstream[0].broken = True
    yield
    upstream[0].broken = False


def test_what_goes_wrong_there_is_a_bad_gateway_here(door: TestClient, broken: None) -> None:
    answer = door.post("/v1/fim/completions", json={"model": "m", "prompt": "x", "max_tokens": 4})

    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "upstream_failed"
    assert "failed with status 500" in answer.json()["error"]["message"]
    assert "SECRET" not in answer.text


def test_a_model_that_reads_in_both_directions_is_refused(tmp_path: Path) -> None:
    from tests.families.published.dream import WRITERS

    WRITERS["dream"](tmp_path / "dream")
    for weights in (tmp_path / "dream").glob("*.safetensors*"):
        weights.unlink()
    with pytest.raises(CheckpointError, match="behind an answer"):
        open_folder(tmp_path / "dream", OpenOptions(), Upstream("http://127.0.0.1:1"))


@pytest.fixture
def start(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Serves until the model has failed to open; what was said on the way."""
    # What is set for the rest of a process would be set for the other tests, too.
    monkeypatch.setattr("calomel.server.run.turn_off_libraries", lambda: None)
    monkeypatch.setattr("calomel.server.run.log_to", lambda *_: None)

    def run(**fields: object) -> str:
        out = io.StringIO()
        own = {"port": 0, "no_auth": True, "runtime_file": tmp_path / "run.json", "model": folder, "outcome_log": False}
        with pytest.raises(StartError) as raised:
            serve(ServerSettings.model_validate({**own, **fields}), out)
        return f"{out.getvalue()}{raised.value}"

    return run


def test_a_server_does_not_start_where_its_upstream_cannot_be_used(
    start: Callable[..., str], tokenizer: PublishedTokenizer, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("s3cret")
    with serving(Vllm(tokenizer, judges=False)) as url:
        said = start(upstream=url, upstream_token_file=tmp_path / "token")

    assert f"Prompts go to {url.removeprefix('http://')}" in said
    assert "without log-probabilities" in said
    assert "s3cret" not in said
    assert "cannot be read" in start(upstream=url, upstream_token_file=tmp_path / "none")
