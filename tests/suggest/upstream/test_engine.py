"""An engine whose model is served elsewhere, against servers that behave, and ones that do not."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.suggest.upstream.conftest import Open
from tests.suggest.upstream.served import MODEL, Asked, Handler, Vllm, head, reply

from calomel.engine import DeadlineExceededError, EngineStoppedError, Request, SamplingParams
from calomel.engine.errors import InvalidCanvasError, InvalidRequestError, PolicyUnavailableError, RequestCancelledError
from calomel.prompts.published import PublishedTokenizer
from calomel.suggest.upstream.errors import UpstreamError

STREAMED: dict[str, Any] = {"until": lambda _: False}
CODE = "def add(a, b):\n    return "


@pytest.fixture
def vllm(tokenizer: PublishedTokenizer) -> Vllm:
    return Vllm(tokenizer)


@pytest.fixture
def request_(tokenizer: PublishedTokenizer) -> Callable[..., Request]:
    def make(**fields: Any) -> Request:
        return Request(context=tuple(tokenizer.encode(CODE)), **fields)

    return make


Ask = Callable[..., Request]


def after_the_probe(vllm: Vllm, handler: Handler) -> Handler:
    """The first completion is vLLM's, all further ones are the handler's."""

    async def handle(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.path != "/v1/completions" or not vllm.asked:
            await vllm(asked, writer)
        else:
            await handler(asked, writer)

    return handle


@pytest.mark.parametrize("fields", [{}, STREAMED, {"record_canvases": True}])
def test_ids_go_out_and_come_in_with_their_log_probabilities(
    opened: Open, vllm: Vllm, request_: Ask, tokenizer: PublishedTokenizer, fields: dict[str, Any]
) -> None:
    result = opened(vllm).submit(request_(**fields)).result(10)

    said = tokenizer.encode("a + b")
    assert result.ids == tuple(said)
    assert result.log_probs == (-0.25,) * len(said)
    assert result.end_log_prob == -0.25
    assert result.finish_reason == "stop"
    body = vllm.asked[-1].body
    assert body["prompt"] == tokenizer.encode(CODE)
    assert body["model"] == MODEL
    assert (body["max_tokens"], body["temperature"], body["top_p"]) == (64, 0.0, 1.0)
    assert (body["logprobs"], body["return_token_ids"]) == (1, True)
    assert body["stop_token_ids"] == [tokenizer.end]
    assert body.get("stream", False) == bool(fields)
    assert not body.keys() & {"top_k", "seed", "frequency_penalty", "presence_penalty", "repetition_penalty"}


def test_sampling_is_sent_where_it_was_asked_for(opened: Open, vllm: Vllm, request_: Ask) -> None:
    sampling = SamplingParams(0.7, 0.9, 20, 0.1, 0.2, 1.1, 5)

    opened(vllm).submit(request_(sampling=sampling, max_new_tokens=2, min_new_tokens=1)).result(10)

    body = vllm.asked[-1].body
    assert {name: body[name] for name in ("temperature", "top_p", "top_k", "seed", "min_tokens")} == {
        "temperature": 0.7,
        "top_p": 0.9,
        "top_k": 20,
        "seed": 5,
        "min_tokens": 1,
    }
    assert (body["frequency_penalty"], body["presence_penalty"], body["repetition_penalty"]) == (0.1, 0.2, 1.1)


def test_an_answer_that_is_cut_at_its_bound_says_so(opened: Open, vllm: Vllm, request_: Ask) -> None:
    result = opened(vllm).submit(request_(max_new_tokens=2)).result(10)

    assert (len(result.ids), result.finish_reason, result.end_log_prob) == (2, "length", None)


def test_a_canvas_is_the_text_so_far(opened: Open, vllm: Vllm, request_: Ask, tokenizer: PublishedTokenizer) -> None:
    handle = opened(vllm).submit(request_(record_canvases=True))

    states = list(handle.states())

    assert handle.result(10).ids == states[-1].ids == tuple(tokenizer.encode("a + b"))
    assert all(all(state.revealed) for state in states)
    assert [len(state.ids) for state in states] == sorted({len(state.ids) for state in states})


def test_an_answer_ends_where_no_more_of_it_is_wanted(opened: Open, vllm: Vllm, request_: Ask) -> None:
    left = asyncio.Event()

    async def endless(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(head(200))
        piece = {**vllm.pieces({"max_tokens": 9})[0]}
        try:
            while True:
                writer.write(f"data: {json.dumps(piece)}\n\n".encode())
                await writer.drain()
                await asyncio.sleep(0)
        finally:
            left.set()

    engine = opened(after_the_probe(vllm, endless))
    result = engine.submit(request_(until=lambda ids: len(ids) >= 5, max_new_tokens=2000)).result(10)

    assert result.finish_reason == "stop"
    assert len(result.ids) >= 5
    while not left.is_set():
        time.sleep(0.01)


def test_a_server_that_takes_text_alone_gets_text_and_is_not_asked_twice_again(
    opened: Open, vllm: Vllm, request_: Ask, tokenizer: PublishedTokenizer
) -> None:
    vllm.ids = False
    engine = opened(vllm)
    refused = len(vllm.asked)
    context = (tokenizer.control["<|im_start|>"], *tokenizer.encode(CODE))

    result = engine.submit(Request(context, **STREAMED)).result(10)

    assert (refused, len(vllm.asked)) == (2, 3)
    assert vllm.asked[-1].body["prompt"] == "<|im_start|>" + CODE
    assert tokenizer.decode(result.ids) == "a + b"
    assert sum(result.log_probs) == pytest.approx(-0.25 * len(tokenizer.encode("a + b")))
    assert result.end_log_prob == -0.25


def test_text_forges_no_control_token_where_prompts_are_text(
    opened: Open, vllm: Vllm, tokenizer: PublishedTokenizer
) -> None:
    vllm.ids = False
    engine = opened(vllm)
    asked = len(vllm.asked)

    with pytest.raises(InvalidRequestError, match="control token"):
        engine.submit(Request(tuple(tokenizer.encode("x = '<|im_end|>'")))).result(10)
    assert len(vllm.asked) == asked


def test_a_server_without_log_probabilities_is_refused_at_the_start(opened: Open, vllm: Vllm) -> None:
    vllm.judges = False
    with pytest.raises(UpstreamError, match=r"without log-probabilities.*vLLM does"):
        opened(vllm)


def test_a_server_of_another_model_is_refused_at_the_start(opened: Open, vllm: Vllm) -> None:
    async def other(asked: Asked, writer: asyncio.StreamWriter) -> None:
        choice = {
            "text": "something",
            "token_ids": [65, 66],
            "logprobs": {"tokens": ["a", "b"], "token_logprobs": [-1, -1]},
        }
        writer.write(reply(200, {"choices": [{**choice, "finish_reason": "length"}]}))

    with pytest.raises(UpstreamError, match="another model"):
        opened(other, model="m")


def test_which_of_several_models_is_for_the_user_to_say(opened: Open, vllm: Vllm, request_: Ask) -> None:
    vllm.names = ("one", "two")
    with pytest.raises(UpstreamError, match="2 models: say which in upstream_model"):
        opened(vllm)

    opened(vllm, model="two").submit(request_()).result(10)

    assert vllm.asked[-1].body["model"] == "two"


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"given": (1, 2)}, PolicyUnavailableError, "trained causally"),
        ({"policy": "left_to_right"}, PolicyUnavailableError, "left_to_right"),
        ({"constraint": object()}, InvalidRequestError, "schema"),
        ({"frozen": {0: 5}}, InvalidCanvasError, "frozen"),
        ({"suffix": (1,)}, InvalidRequestError, "suffix"),
        ({"max_new_tokens": 0}, InvalidRequestError, "max_new_tokens"),
    ],
)
def test_what_an_upstream_can_not_do_is_refused_by_name_before_it_is_asked(
    opened: Open, vllm: Vllm, request_: Ask, fields: dict[str, Any], error: type[Exception], words: str
) -> None:
    engine = opened(vllm)
    with pytest.raises(error, match=words):
        engine.submit(request_(**fields))
    assert len(vllm.asked) == 1


def test_a_busy_server_is_asked_once_more_when_it_says_when(opened: Open, vllm: Vllm, request_: Ask) -> None:
    pauses: list[float] = []
    seen: list[Asked] = []

    async def busy(asked: Asked, writer: asyncio.StreamWriter) -> None:
        seen.append(asked)
        if len(seen) == 1:
            writer.write(reply(429, None, retry_after="2"))
        else:
            await vllm(asked, writer)

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    result = opened(after_the_probe(vllm, busy), sleep=sleep).submit(request_()).result(10)

    assert result.finish_reason == "stop"
    assert (len(seen), pauses) == (2, [2.0])


@pytest.mark.parametrize(("retry", "times"), [({}, 1), ({"retry_after": "0"}, 2), ({"retry_after": "3600"}, 1)])
def test_a_server_that_stays_busy_is_an_error(
    opened: Open, vllm: Vllm, request_: Ask, retry: dict[str, str], times: int
) -> None:
    seen: list[Asked] = []

    async def busy(asked: Asked, writer: asyncio.StreamWriter) -> None:
        seen.append(asked)
        writer.write(reply(503, None, **retry))

    engine = opened(after_the_probe(vllm, busy))
    with pytest.raises(UpstreamError, match="too much to do"):
        engine.submit(request_()).result(10)
    assert len(seen) == times


def test_a_connection_that_is_reset_before_an_answer_is_made_once_more(opened: Open, vllm: Vllm, request_: Ask) -> None:
    seen: list[Asked] = []

    async def reset(asked: Asked, writer: asyncio.StreamWriter) -> None:
        seen.append(asked)
        if len(seen) == 1:
            writer.close()
        else:
            await vllm(asked, writer)

    result = opened(after_the_probe(vllm, reset)).submit(request_()).result(10)

    assert (len(seen), result.finish_reason) == (2, "stop")


def test_an_answer_that_breaks_off_is_an_error_and_not_asked_for_again(opened: Open, vllm: Vllm, request_: Ask) -> None:
    seen: list[Asked] = []

    async def dying(asked: Asked, writer: asyncio.StreamWriter) -> None:
        seen.append(asked)
        writer.write(head(200) + f"data: {json.dumps(vllm.pieces({'max_tokens': 9})[0])}\n\n".encode())
        await writer.drain()
        writer.close()

    engine = opened(after_the_probe(vllm, dying))
    with pytest.raises(UpstreamError, match="middle of an answer"):
        engine.submit(request_(**STREAMED)).result(10)
    assert len(seen) == 1


def test_a_redirect_is_not_followed(opened: Open, vllm: Vllm, request_: Ask) -> None:
    seen: list[str] = []

    async def elsewhere(asked: Asked, writer: asyncio.StreamWriter) -> None:
        seen.append(asked.path)
        writer.write(reply(307, None, location="/elsewhere"))

    engine = opened(after_the_probe(vllm, elsewhere))
    with pytest.raises(UpstreamError, match="not followed"):
        engine.submit(request_()).result(10)
    assert seen == ["/v1/completions"]


@pytest.mark.parametrize("fields", [{}, STREAMED])
def test_an_answer_without_measure_is_let_go(opened: Open, vllm: Vllm, request_: Ask, fields: dict[str, Any]) -> None:
    sent: list[int] = []

    async def huge(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(head(200, 100_000_000))
        for _ in range(100):
            writer.write(b" " * 1_000_000)
            await writer.drain()
            sent.append(1)

    engine = opened(after_the_probe(vllm, huge))
    with pytest.raises(UpstreamError, match="larger"):
        engine.submit(request_(**fields)).result(10)
    assert len(sent) < 50


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (reply(200, ["no"]), "in the middle|no completion"),
        (head(200, 3) + b"{no", "no JSON"),
        (reply(200, {"choices": [{"text": 5}]}), "no completion"),
        (
            reply(200, {"choices": [{"text": "x", "token_ids": [10**9], "logprobs": {"token_logprobs": [-1]}}]}),
            "another",
        ),
        (
            reply(200, {"choices": [{"text": "x", "token_ids": [5], "logprobs": {"token_logprobs": [None]}}]}),
            "log-prob",
        ),
        (head(200, 0, content_encoding="gzip"), "packed"),
        (reply(401), "token"),
        (reply(404), "upstream_model"),
        (reply(500), "status 500"),
    ],
)
def test_what_can_not_be_used_is_an_error_in_one_sentence(
    opened: Open, vllm: Vllm, request_: Ask, answer: bytes, words: str
) -> None:
    async def wrong(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    engine = opened(after_the_probe(vllm, wrong))
    with pytest.raises(UpstreamError, match=words):
        engine.submit(request_()).result(10)


@pytest.fixture
def hanging(opened: Open, vllm: Vllm) -> tuple[Any, dict[str, Any]]:
    """An engine whose upstream begins an answer and says no more, and what was seen of it."""
    seen: dict[str, Any] = {"asked": 0, "left": 0}

    async def hang(asked: Asked, writer: asyncio.StreamWriter) -> None:
        seen["asked"] += 1
        if asked.body.get("stream"):
            writer.write(head(200) + f"data: {json.dumps(vllm.pieces({'max_tokens': 9})[0])}\n\n".encode())
            await writer.drain()
        try:
            while not asked.gone():  # noqa: ASYNC110  (the connection tells nobody)
                await asyncio.sleep(0.005)
        finally:
            seen["left"] += 1

    return opened(after_the_probe(vllm, hang)), seen


def waited(ready: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not ready():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_cancelling_closes_the_question(hanging: tuple[Any, dict[str, Any]], request_: Ask) -> None:
    engine, seen = hanging
    handle = engine.submit(request_())
    waited(lambda: seen["asked"] == 1)
    assert engine.occupancy == (1, 0)

    handle.cancel()

    with pytest.raises(RequestCancelledError):
        handle.result(10)
    waited(lambda: seen["left"] == 1)
    waited(lambda: engine.occupancy == (0, 0))


def test_a_deadline_brings_what_is_known(hanging: tuple[Any, dict[str, Any]], request_: Ask) -> None:
    engine, _ = hanging
    result = engine.submit(request_(deadline=time.monotonic() + 0.4, **STREAMED)).result(10)

    assert (result.finish_reason, len(result.ids)) == ("deadline", 1)


def test_a_deadline_before_anything_is_known_is_an_error(hanging: tuple[Any, dict[str, Any]], request_: Ask) -> None:
    engine, _ = hanging
    with pytest.raises(DeadlineExceededError):
        engine.submit(request_(deadline=time.monotonic() + 0.2)).result(10)


def test_closing_ends_what_is_under_way(hanging: tuple[Any, dict[str, Any]], request_: Ask) -> None:
    engine, seen = hanging
    handle = engine.submit(request_())
    waited(lambda: seen["asked"] == 1)

    engine.close()
    engine.close()

    with pytest.raises(EngineStoppedError):
        handle.result(10)
    with pytest.raises(EngineStoppedError):
        engine.submit(request_())


def test_a_server_that_is_not_there_is_named_without_the_token(
    opened: Open, vllm: Vllm, request_: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    async def refusing(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.close()

    with caplog.at_level(logging.DEBUG), pytest.raises(UpstreamError) as raised:
        opened(refusing, token="s3cret-token")

    assert "cannot be reached" in str(raised.value)
    assert "s3cret" not in str(raised.value) + repr(raised.value.__context__)
    assert "s3cret" not in "".join(record.getMessage() for record in caplog.records)


def test_the_token_is_sent_and_nothing_of_the_environment_is(
    opened: Open, vllm: Vllm, request_: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")

    opened(vllm, token="s3cret-token").submit(request_()).result(10)

    assert vllm.asked[-1].headers["authorization"] == "Bearer s3cret-token"


def test_questions_of_one_kind_go_side_by_side(hanging: tuple[Any, dict[str, Any]], request_: Ask) -> None:
    engine, seen = hanging
    handles = engine.submit_all([request_() for _ in range(8)])

    waited(lambda: seen["asked"] == 8)

    for handle in handles:
        handle.cancel()
