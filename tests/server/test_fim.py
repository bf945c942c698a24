"""POST /v1/fim/completions: plain, streamed, hung up, full."""

from __future__ import annotations

import asyncio
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
import uvicorn
from starlette.testclient import TestClient
from tests.server.conftest import FakeFiller, Opener, events, head, until
from tests.server.test_edit import ask as edit_ask
from tests.server.test_edit import prompt as edit_prompt

from calomel.engine import DeadlineExceededError, EngineStoppedError
from calomel.engine.errors import CacheFullError, ContextTooLongError, InvalidRequestError
from calomel.infer.completer import Candidate, CanvasText, CompleteAnswer, CompleteRequest, Draft, Kind
from calomel.infer.wire import COMPLETE_PATH, INFO_PATH, decode, decode_info, encode
from calomel.prompts.parts import EditRegion, PromptParts
from calomel.server import lifetime
from calomel.server.lifetime import DrainingServer

SECRET = "sk-live-THE-USERS-OWN-TEXT"


URL = "/v1/fim/completions"


LONG = "x = 1  # a line\n" * 200


MEGABYTES = ("xo" + "xb-") * 600_000


def ask(**fields: Any) -> dict[str, Any]:
    return {"model": "mercury-edit-2", "prompt": "def f(n):\n    ", **fields}


def body(size: int) -> bytes:
    return json.dumps(ask(prompt="x" * size)).encode()


LOOKED_AT: dict[str, dict[str, Any]] = {
    URL: {"model": "m", "prompt": LONG, "suffix": "\n"},
    "/v1/completions": {"model": "m", "prompt": LONG, "suffix": "\n"},
    "/infill": {"input_prefix": LONG, "input_suffix": "\n", "input_extra": [{"text": LONG, "filename": "a.py"}]},
    "/v1/edit/completions": edit_ask(edit_prompt().replace("print(area(1, 2))\n", LONG)),
}


def test_an_answer_that_time_cut_short_ends_with_length(client: TestClient, filler: Any) -> None:
    filler.finish_reason = "deadline"
    assert client.post(URL, json=ask()).json()["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
def test_json_may_be_declared_in_any_of_its_usual_ways(client: TestClient, kind: str) -> None:
    answer = client.post(URL, content=json.dumps(ask()).encode(), headers={"content-type": kind})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("refusal", "status", "published"),
    [
        (ContextTooLongError, 400, ("invalid_request_error", "context_length_exceeded", None)),
        (InvalidRequestError, 400, ("invalid_request_error", "invalid_parameter", None)),
        (CacheFullError, 503, ("server_error", "engine_overloaded", "1")),
        (DeadlineExceededError, 503, ("server_error", "engine_overloaded", "1")),
        (EngineStoppedError, 503, ("server_error", "engine_stopped", "2")),
        (RuntimeError, 500, ("server_error", "server_error", None)),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_of_the_engine_has_a_published_shape(
    client: TestClient,
    filler: Any,
    refusal: type[Exception],
    status: int,
    published: tuple[str, str, str | None],
    *,
    stream: bool,
) -> None:
    filler.error = refusal("top_p must be above 0")
    answer = client.post(URL, json=ask(stream=stream))

    error = answer.json()["error"]
    assert answer.status_code == status
    assert (error["type"], error["code"], answer.headers.get("retry-after")) == published


def test_the_users_text_appears_in_no_error_and_no_log(
    open_client: Opener, filler: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = open_client()
    client.headers["authorization"] = "Bearer test-token-0123456789"
    answers = [client.post(URL, json=ask(prompt=SECRET, suffix=SECRET))]
    answers.append(client.post(URL, json=ask(prompt=SECRET, max_tokens=SECRET, stop=[SECRET * 20])))
    answers.append(client.post(URL, content=SECRET, headers={"content-type": "application/json"}))
    answers.append(client.post(f"/{SECRET}", json=ask()))
    for stream in (False, True):
        filler.error = ValueError(SECRET)
        answers.append(client.post(URL, json=ask(prompt=SECRET, stream=stream)))
    answers.append(client.get("/v1/models", headers={"authorization": f"Bearer {SECRET}"}))

    assert [a.status_code for a in answers] == [200, 400, 400, 404, 500, 500, 401]
    assert all(SECRET not in a.text for a in answers)
    own = [r.getMessage() for r in caplog.records if not r.name.startswith(("httpx", "httpcore"))]
    assert any("unexpected ValueError" in line for line in own)
    assert all(SECRET not in line and "test-token" not in line for line in own)


def test_a_prompt_that_is_too_long_is_cut_with_a_warning(client: TestClient, filler: Any) -> None:
    filler.trimmed = True

    answer = client.post(URL, json=ask())

    assert answer.status_code == 200
    assert "did not see its beginning" in answer.json()["warning"]


def test_the_model_reads_no_more_than_the_administrator_lets_it(open_client: Opener, filler: Any) -> None:
    open_client(context_tokens=777).post(URL, json=ask())

    assert filler.requests[0].max_context == 777


@pytest.mark.parametrize("url", [URL, "/v1/completions"])
def test_usage_comes_in_a_chunk_without_choices_when_asked_for(client: TestClient, url: str) -> None:
    *_, last, done = events(client.post(url, json=ask(stream=True, stream_options={"include_usage": True})))

    assert done == "[DONE]"
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == 38
    assert last["usage"]["cached_input_tokens"] == last["usage"]["prompt_tokens_details"]["cached_tokens"] == 16


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, {"include_usage": None}])
def test_no_usage_chunk_comes_unasked(client: TestClient, options: Any) -> None:
    assert '"usage"' not in client.post(URL, json=ask(stream=True, stream_options=options)).text


def test_an_empty_answer_is_a_finish_reason_alone(client: TestClient, filler: Any) -> None:
    filler.deltas = []
    chunk, done = events(client.post(URL, json=ask(stream=True)))

    assert chunk["choices"] == [{"index": 0, "text": "", "finish_reason": "stop"}]
    assert done == "[DONE]"


def test_line_ends_in_the_text_do_not_break_the_framing(client: TestClient, filler: Any) -> None:
    filler.deltas = ["a\n\ndata: [DONE]\n\n", "\r\u2028é🙂"]
    *chunks, _, _ = events(client.post(URL, json=ask(stream=True)))

    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == "a\n\ndata: [DONE]\n\n\r\u2028é🙂"


@pytest.mark.parametrize(("failure", "code"), [(RuntimeError, "server_error"), (EngineStoppedError, "engine_stopped")])
def test_an_error_amid_a_stream_is_its_last_event_and_done_does_not_follow(
    client: TestClient, filler: Any, failure: type[Exception], code: str
) -> None:
    filler.error, filler.error_after = failure("inner words"), 1
    answer = client.post(URL, json=ask(stream=True))
    first, last = events(answer)

    assert first["choices"][0]["text"] == "return "
    assert (last["error"]["type"], last["error"]["code"]) == ("server_error", code)
    assert "inner words" not in answer.text


@pytest.mark.parametrize("stream", [False, True])
def test_after_the_engine_died_clients_are_told_until_the_server_has_ended(
    client: TestClient, filler: Any, *, stream: bool
) -> None:
    filler.error = EngineStoppedError("the user's text")
    failed, later = (client.post(URL, json=ask(stream=stream)) for _ in range(2))

    assert (failed.status_code, failed.json()["error"]["code"]) == (503, "engine_stopped")
    assert "text" not in failed.text
    assert (later.status_code, later.json()["error"]["code"]) == (503, "model_failed")
    assert client.get("/health").json()["status"] == "failed"


def test_a_diffusing_stream_is_whole_canvases_that_take_each_others_place(client: TestClient, filler: Any) -> None:
    filler.canvas_states = [
        CanvasText(1, "ret\u2591", ("ret", "\u2591"), (True, False)),
        CanvasText(2, "return n", ("return", " n"), (True, True)),
    ]

    *chunks, done = events(client.post(URL, json=ask(stream=True, diffusing=True)))

    assert done == "[DONE]"
    assert [chunk["choices"][0]["text"] for chunk in chunks] == ["ret\u2591", "return n", "return n"]
    assert [chunk.get("calomel") for chunk in chunks] == [
        {"step": 1, "pieces": ["ret", "\u2591"], "revealed": [True, False]},
        {"step": 2, "pieces": ["return", " n"], "revealed": [True, True]},
        None,
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "stop"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_hangs_up_before_the_answer_cancels_the_work(
    live: SimpleNamespace, filler: Any, *, stream: bool
) -> None:
    filler.gate = Event()
    with httpx.Client(base_url=live.url, headers=live.headers, timeout=0.5) as client, pytest.raises(httpx.ReadTimeout):
        client.post(URL, json=ask(stream=stream))

    assert filler.cancelled.wait(10)
    until(lambda: live.app.state.app_state.admission.taken == 0)


def test_a_client_that_hangs_up_amid_a_stream_cancels_the_work(live: SimpleNamespace, filler: Any) -> None:
    filler.gate, filler.gate_after = Event(), 1
    with (
        httpx.Client(base_url=live.url, headers=live.headers) as client,
        client.stream("POST", URL, json=ask(stream=True)) as answer,
    ):
        lines = answer.iter_lines()
        assert '"return "' in next(lines)
        assert live.app.state.app_state.admission.taken == 1

    assert filler.cancelled.wait(10)
    until(lambda: live.app.state.app_state.admission.taken == 0)


def test_an_answer_that_is_read_to_its_end_cancels_nothing(live: SimpleNamespace, filler: Any) -> None:
    with httpx.Client(base_url=live.url, headers=live.headers) as client:
        assert client.post(URL, json=ask()).status_code == 200
        assert client.post(URL, json=ask(stream=True)).text.endswith("data: [DONE]\n\n")

    assert not filler.cancelled.is_set()
    until(lambda: live.app.state.app_state.admission.taken == 0)


def test_a_client_that_hangs_up_amid_its_body_leaves_no_trace_in_the_log(
    live: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "calomel.server")
    with live.connect() as client:
        client.sendall(head(URL, "POST", "content-type: application/json", "content-length: 500") + b"{")
    with httpx.Client(base_url=live.url, headers=live.headers) as other:
        assert other.post(URL, json=ask()).status_code == 200

    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_beyond_the_limit_is_told_when_to_come_back(
    open_client: Opener, filler: Any, *, stream: bool
) -> None:
    client = open_client(max_requests=1)
    filler.gate = Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.post, URL, json=ask(stream=stream))
        assert filler.started.wait(10)
        refused = client.post(URL, json=ask())
        filler.gate.set()
        first = running.result(10)

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert refused.json()["error"]["code"] == "engine_overloaded"
    assert first.status_code == 200
    assert client.post(URL, json=ask()).status_code == 200


@pytest.mark.parametrize("error_after", [0, 1])
@pytest.mark.parametrize("stream", [False, True])
def test_a_failed_request_gives_its_place_back(
    open_client: Opener, filler: Any, *, stream: bool, error_after: int
) -> None:
    client = open_client(max_requests=1)
    filler.error, filler.error_after = ValueError(), error_after
    for _ in range(3):
        client.post(URL, json=ask(stream=stream))
    filler.error = None

    assert client.post(URL, json=ask()).status_code == 200


@pytest.mark.parametrize("content", [body(2000), iter([body(2000)[:1500], body(2000)[1500:]])], ids=["declared", "not"])
def test_a_body_over_the_limit_is_refused_before_it_is_read(open_client: Opener, filler: Any, content: Any) -> None:
    client = open_client(max_body_bytes=2000)
    answer = client.post(URL, content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")
    assert filler.requests == []
    assert client.post(URL, json=ask()).status_code == 200


def test_no_more_of_megabytes_is_looked_at_than_a_model_can_read(client: TestClient, filler: FakeFiller) -> None:
    assert client.post(URL, json=ask(prompt=MEGABYTES, suffix="\n" + MEGABYTES[:500_000])).is_success
    request = filler.requests[-1]
    assert MEGABYTES.endswith(request.parts.prefix)
    assert request.max_context * 16 <= len(request.parts.prefix) < request.max_context * 16 + 65_536
    assert len(request.parts.suffix) < request.max_context * 16 + 65_536


JSON = {"content-type": "application/json"}


QUESTION = CompleteRequest("fill", PromptParts(path="a.py", prefix="def f(n):\n    "), max_tokens=32)


REWRITE = CompleteRequest(
    "edit", PromptParts(prefix="a", region=EditRegion("b", 0)), drafts=(Draft("c", "rename"), Draft("d", "shape"))
)


COMPLETE_SECRET = "s3cret-text"


def learned(client: TestClient, *kinds: Kind) -> None:
    """The model of the door says that it was trained for `kinds`."""
    loader = client.app.state.app_state.loader  # type: ignore[attr-defined]
    info = replace(loader.info(), kinds=kinds)
    loader._describe = lambda: info


def ask_of_complete(client: TestClient, request: CompleteRequest = QUESTION) -> Any:
    return client.post(COMPLETE_PATH, content=encode(request), headers=JSON)


def test_the_parts_reach_the_model_and_its_answer_carries_the_engines_signals(client: TestClient, filler: Any) -> None:
    found = decode(ask_of_complete(client).content, CompleteAnswer)
    (candidate,) = found.candidates
    assert candidate.text == "return n"
    assert (candidate.log_probs, candidate.entropies) == ((-0.25, -0.5), (0.5, 0.75))
    assert (candidate.end_log_prob, candidate.steps) == (-0.125, 3)
    assert (found.context_tokens, found.cached_tokens, found.model) == (24, 16, "calomel-nano")
    assert found.timings.total == pytest.approx(0.02)
    assert found.timings.queued == pytest.approx(0.005)
    (request,) = filler.requests
    assert (request.parts, request.max_tokens) == (QUESTION.parts, 32)


def test_a_rewrite_is_left_to_models_that_learned_it(client: TestClient, filler: Any) -> None:
    learned(client, "fill")
    found = decode(ask_of_complete(client, REWRITE).content, CompleteAnswer)
    assert (found.candidates, found.reason) == ((), "not_trained_for_edits")
    assert filler.requests == []


def test_a_rewrite_carries_every_makers_text_and_how_it_was_judged(client: TestClient, filler: Any) -> None:
    learned(client, "fill", "edit")
    said = (
        Candidate("c", log_probs=(-0.5,), end_log_prob=-0.5, maker="rename", log_prob=-1.0, keep_log_prob=-3.0),
        Candidate("d", maker="canvas", log_prob=-4.0, keep_log_prob=-3.0),
    )

    async def complete(request: CompleteRequest) -> CompleteAnswer:
        filler.requests.append(request)
        return CompleteAnswer(said, context_tokens=9, cached_tokens=8)

    filler.complete = complete
    found = decode(ask_of_complete(client, REWRITE).content, CompleteAnswer)
    assert found.candidates == said
    assert [candidate.log_ratio for candidate in found.candidates] == [2.0, -1.0]
    assert (found.context_tokens, found.cached_tokens, found.model) == (9, 8, "calomel-nano")
    assert filler.requests == [REWRITE]


def test_info_says_what_the_model_can_do(client: TestClient) -> None:
    info = decode_info(client.get(INFO_PATH).content)
    assert (info.id, info.kinds, info.max_context) == ("calomel-nano", ("fill", "edit"), 32_768)
    assert (info.region.above, info.region.below, info.region.context) == (1, 2, 512)
    assert info.tokenizer is not None
    assert info.tokenizer.endswith("tokenizer.json")


def test_the_log_has_counts_and_no_text(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="calomel")
    ask_of_complete(client, CompleteRequest("fill", PromptParts(path=f"{COMPLETE_SECRET}.py", prefix=COMPLETE_SECRET)))
    assert "24 prompt tokens (16 cached)" in caplog.text
    assert COMPLETE_SECRET not in caplog.text


async def test_memory_is_given_back_once_after_a_minute_of_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    now, given = 0.0, Mock()
    monkeypatch.setattr(lifetime, "give_back_memory", given)
    server = DrainingServer(uvicorn.Config("none"), Mock(), Mock(failure=None), None, lambda: now)
    counts = []
    for now, requests in ((59, 0), (60, 0), (500, 0), (501, 1), (560, 1), (562, 1), (700, 1)):  # noqa: B007
        server.server_state.total_requests = requests
        assert not await server.on_tick(0)
        counts.append(given.call_count)
    assert counts == [0, 1, 1, 1, 1, 2, 2]


async def test_a_server_ends_only_when_no_request_has_run_for_some_time() -> None:
    now, lasting = 0.0, asyncio.create_task(asyncio.sleep(60))
    server = DrainingServer(uvicorn.Config("none"), Mock(), Mock(failure=None), 60, lambda: now)

    async def over(then: float) -> bool:
        nonlocal now
        now = then
        return await server.on_tick(0)

    assert not await over(59)
    server.server_state.tasks.add(lasting)
    assert not await over(500)
    server.server_state.tasks.clear()
    server.server_state.total_requests += 1
    assert not await over(510)
    assert not await over(569)
    assert await over(570)
    lasting.cancel()
