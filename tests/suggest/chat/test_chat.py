"""Conversations with a model that says what it is told to, and with one that says anything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch
from torch import Tensor

from calomel.engine import BlockCausal, DiffusionConfig, Engine, ModelConfig, SamplingParams, Transformer
from calomel.engine.errors import ContextTooLongError, RequestCancelledError
from calomel.prompts.chat import Call, Function, Message, shown_so_far
from calomel.prompts.chat_template import ChatTemplate, ChatTemplateError
from calomel.prompts.grammar import GrammarError
from calomel.prompts.tokenizer import Tokenizer
from calomel.suggest.chat import Chat, ChatRequest, Reply
from calomel.suggest.completer import CanvasText
from calomel.suggest.filler import Filler
from calomel.training.documents import train_tokenizer

SOURCE = (
    "{% if tools %}<|file|>tools<|prefix|>{{ tools | tojson }}<|end|>{% endif %}"
    "{% for m in messages %}<|file|>{{ m.role }}<|prefix|>{{ m.content }}<|end|>{% endfor %}"
    "<|file|>assistant {{ reasoning_effort }}<|prefix|>"
    "{% if reasoning_effort == 'high' and enable_thinking %}{{ '<think>\\n' }}{% endif %}"
)
ASK = ChatRequest((Message("user", "How late is it?"),), max_tokens=200)
NOW = Function("now", "Tells the time.", {"type": "object", "properties": {}, "additionalProperties": False})
ADD = Function(
    "add",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99}},
        "required": ["a"],
        "additionalProperties": False,
    },
)


class Speaking(Transformer):
    """Says `text` behind the context of the first request, on a canvas and causally, and then ends."""

    def __init__(self, config: ModelConfig, tokenizer: Tokenizer) -> None:
        super().__init__(config)
        self.tokenizer = tokenizer
        self.said: list[int] = []
        self.context = 0

    def forward(self, ids: Tensor, positions: Tensor, attend: object, text: Tensor | None = None) -> Tensor:
        del attend, text
        return torch.stack((ids.float(), positions.float()), dim=-1)

    def logits(self, hidden: Tensor) -> Tensor:
        rows = torch.full((len(hidden), self.config.vocab_size), -20.0)
        for row, (_, position) in zip(rows, hidden.tolist(), strict=True):
            place = int(position) - self.context
            row[self.said[place] if 0 <= place < len(self.said) else self.tokenizer.end] = 0.0
        return rows


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    file = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    return train_tokenizer([Path(__file__).read_text(encoding="utf-8")], file, vocab_size=340)


@pytest.fixture(scope="module")
def config(tokenizer: Tokenizer) -> ModelConfig:
    return ModelConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=2048,
        diffusion=DiffusionConfig(mask_token_id=tokenizer.mask, end_token_id=tokenizer.end, max_canvas=32),
    )


def chat_of(filler: Filler) -> Chat:
    numbers = count(1)
    return Chat(filler, ChatTemplate({"default": SOURCE}), lambda: f"call_{next(numbers)}")


@pytest.fixture
def says(config: ModelConfig, tokenizer: Tokenizer) -> Iterator[Callable[[str, ChatRequest], Chat]]:
    """A chat whose answer to a request is a given text."""
    engines: list[Engine] = []

    def make(text: str, request: ChatRequest) -> Chat:
        model = Speaking(config, tokenizer)
        engine = Engine(BlockCausal(model, cache_tokens=4096))
        engines.append(engine)
        chat = chat_of(Filler(engine, tokenizer))
        model.said = tokenizer.encode(text)
        told = {"reasoning_effort": request.effort, "enable_thinking": request.free}
        model.context = len(chat._prompt.render(request.messages, request.offered, **told))
        return chat

    yield make
    for engine in engines:
        engine.close()


@pytest.fixture
def babbling(config: ModelConfig, tokenizer: Tokenizer) -> Iterator[Chat]:
    """A chat on random weights."""
    torch.manual_seed(3)
    model = Transformer(config)
    with torch.no_grad():
        model.embed_tokens.weight.normal_(std=1.0)
    engine = Engine(BlockCausal(model, cache_tokens=4096))
    yield chat_of(Filler(engine, tokenizer))
    engine.close()


Says = Callable[[str, ChatRequest], Chat]


async def test_what_the_model_says_is_the_reply(says: Says) -> None:
    reply = await says("Half past <b>nine</b>.\n", ASK).reply(ASK)

    assert reply.content == "Half past <b>nine</b>.\n"
    assert reply.finish_reason == "stop"
    assert reply.calls == ()
    assert reply.prompt_tokens > 0
    assert reply.completion_tokens > 0


@pytest.mark.parametrize(
    ("text", "content", "thought", "calls"),
    [
        ("plain <| text >", "plain <| text >", "", ()),
        ("<think>\nLet me see.\n</think>\n\nNine.", "Nine.", "Let me see.", ()),
        ("<think>never done", "", "never done", ()),
        ("<thinking> aloud", "<thinking> aloud", "", ()),
        ('Wait.\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>', "Wait.", "", (Call("now", "{}"),)),
        (
            '<think>hm</think><tool_call>{"name":"now"}</tool_call><tool_call>{"name":"add","arguments":{"a":3}}</tool_call>',
            "",
            "hm",
            (Call("now", "{}"), Call("add", '{"a": 3}')),
        ),
        ("<tool_call>{broken</tool_call> x", "<tool_call>{broken</tool_call> x", "", ()),
        ("ends with <tool_", "ends with <tool_", "", ()),
        ("ends with space \n", "ends with space \n", "", ()),
    ],
)
async def test_thoughts_and_calls_are_told_from_the_content_and_a_stream_adds_up_to_it(
    says: Says, text: str, content: str, thought: str, calls: tuple[Call, ...]
) -> None:
    request = replace(ASK, functions=(NOW, ADD))
    chat = says(text, request)

    reply = await chat.reply(request)
    pieces = [piece async for piece in chat.stream(request)]

    assert (reply.content, reply.thought) == (content, thought)
    assert tuple(replace(call, id="") for call in reply.calls) == calls
    assert [call.id for call in reply.calls] == [f"call_{number}" for number in range(1, len(calls) + 1)]
    assert reply.finish_reason == ("tool_calls" if calls else "stop")
    assert bool(reply.thought_tokens) == bool(thought)
    assert "".join(piece for piece in pieces if isinstance(piece, str)) == content
    assert isinstance(pieces[-1], Reply)
    assert pieces[-1].content == content


@pytest.mark.parametrize("functions", [(), (NOW,)])
def test_what_is_shown_of_a_growing_answer_is_never_taken_back(functions: tuple[Function, ...]) -> None:
    for text in (
        "Nine. \n",
        "<think>a</think>\n\nb",
        ' x <tool_call>{"name": "now"}</tool_call> y ',
        "a <tool b <tool_call>",
    ):
        final = shown_so_far(text, functions)
        grown = [shown_so_far(text[:size], functions) for size in range(len(text) + 1)]
        for earlier, later in pairwise(grown):
            assert later.startswith(earlier)
        assert grown[-1] == final


async def test_a_thought_that_the_prompt_begins_is_none_of_the_content(says: Says) -> None:
    request = replace(ASK, effort="high")
    chat = says("Let me see.\n</think>\n\nNine.", request)

    reply = await chat.reply(request)
    pieces = [piece async for piece in chat.stream(request)]
    states = [state async for state in chat.canvases(request)]

    assert (reply.thought, reply.content) == ("Let me see.", "Nine.")
    assert "".join(piece for piece in pieces if isinstance(piece, str)) == "Nine."
    assert not any("Let me" in state.text for state in states if isinstance(state, CanvasText))


async def test_where_a_form_is_asked_for_there_is_no_thought_before_it(says: Says) -> None:
    request = replace(ASK, effort="high", pattern="[a-z]+")

    assert (await says("nine", request).reply(request)).content == "nine"


async def test_calls_are_text_where_no_function_may_be_called(says: Says) -> None:
    text = '<tool_call>{"name": "now"}</tool_call>'
    request = replace(ASK, functions=(NOW,), calling="none")

    assert (await says(text, request).reply(request)).content == text


async def test_a_stop_string_ends_the_reply(says: Says) -> None:
    request = replace(ASK, stop=("nine", "ten"))
    chat = says("Half past nine or ten.", request)

    reply = await chat.reply(request)
    pieces = [piece async for piece in chat.stream(request)]

    assert reply.content == "Half past "
    assert reply.finish_reason == "stop"
    assert "".join(piece for piece in pieces if isinstance(piece, str)) == "Half past "


async def test_canvas_states_take_each_others_place_and_the_reply_comes_last(says: Says) -> None:
    text = "A rather long answer that needs more than one canvas to be said in full, so it does."
    states = [state async for state in says(text, ASK).canvases(ASK)]

    assert isinstance(states[-1], Reply)
    assert states[-1].content == text
    assert len(states) > 2
    for state in states[:-1]:
        assert isinstance(state, CanvasText)
        assert len(state.pieces) == len(state.revealed)


async def test_the_form_is_enforced_upon_a_model_that_says_something_else(says: Says) -> None:
    schema = {"type": "object", "properties": {"hour": {"enum": [9, 10]}}, "required": ["hour"]}
    request = replace(ASK, schema={**schema, "additionalProperties": False})

    reply = await says('{"hour": 10, "and": "more"}', request).reply(request)

    assert json.loads(reply.content) == {"hour": 10}
    assert reply.finish_reason == "stop"


@pytest.mark.parametrize("effort", ["instant", "high"])
async def test_more_effort_means_more_steps(babbling: Chat, effort: Any) -> None:
    reply = await babbling.reply(replace(ASK, effort=effort, max_tokens=64))

    assert reply.steps <= (4 * 3 if effort == "instant" else 32 * 3)
    assert reply.steps >= (1 if effort == "instant" else 13)


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_the_model_is_json_that_ends_fits_its_schema(babbling: Chat, seed: int) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 6},
            "tags": {"type": "array", "items": {"enum": ["a", "b", 3]}, "maxItems": 3},
            "on": {"type": "boolean"},
        },
        "required": ["name", "tags", "on"],
        "additionalProperties": False,
    }
    request = replace(ASK, schema=schema, max_tokens=300, sampling=SamplingParams(temperature=0.75, seed=seed))

    reply = await babbling.reply(request)

    if reply.finish_reason == "stop":
        jsonschema.validate(json.loads(reply.content), schema)
    else:
        assert reply.finish_reason == "length"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("named", [None, "add"])
async def test_a_required_call_is_made_whatever_the_model_is(babbling: Chat, seed: int, named: str | None) -> None:
    request = replace(
        ASK,
        functions=(NOW, ADD),
        calling="required",
        named=named,
        parallel=False,
        sampling=SamplingParams(temperature=0.75, seed=seed),
    )

    reply = await babbling.reply(request)

    assert reply.finish_reason == "tool_calls"
    (call,) = reply.calls
    assert call.name in ({"now", "add"} if named is None else {named})
    jsonschema.validate(json.loads(call.arguments), {"now": NOW, "add": ADD}[call.name].parameters or {})
    assert reply.content == ""


async def test_strict_functions_are_called_rightly_or_not_at_all(says: Says) -> None:
    strict = replace(ADD, strict=True)
    request = replace(ASK, functions=(strict,))

    reply = await says('Sure: <tool_call>\n{"name": "add", "arguments": {"a": 7}}\n</tool_call>', request).reply(
        request
    )
    wrong = await says('Sure: <tool_call>\n{"name": "add", "arguments": {"b": 7}}\n</tool_call>', request).reply(
        request
    )

    assert [json.loads(call.arguments) for call in reply.calls] == [{"a": 7}]
    for call in wrong.calls:
        jsonschema.validate(json.loads(call.arguments), ADD.parameters or {})
    assert '"b"' not in wrong.content


async def test_what_can_not_be_had_is_said_before_anything_runs(babbling: Chat) -> None:
    with pytest.raises(GrammarError):
        await babbling.reply(replace(ASK, schema={"type": "nope"}))
    with pytest.raises(GrammarError):
        await babbling.reply(replace(ASK, pattern="(["))
    with pytest.raises(ChatTemplateError):
        await babbling.reply(replace(ASK, messages=(Message("user", "".join(map(chr, range(0xFDD0, 0xFDF0)))),)))
    with pytest.raises(ContextTooLongError):
        await babbling.reply(replace(ASK, messages=(Message("user", "word " * 3000),)))


async def test_the_reply_takes_no_more_than_the_positions_that_are_left(babbling: Chat, tokenizer: Tokenizer) -> None:
    long = tokenizer.decode(tokenizer.encode("word " * 3000)[:1980])
    request = replace(ASK, messages=(Message("user", long),), effort="instant", max_tokens=50_000, pattern="[a-z]+")

    reply = await babbling.reply(request)

    assert 1980 < reply.prompt_tokens < 2048
    assert reply.prompt_tokens + reply.completion_tokens <= 2048


async def test_a_reply_that_nobody_waits_for_any_more_is_cancelled(babbling: Chat) -> None:
    request = replace(ASK, max_tokens=1500, schema={"type": "array", "minItems": 1000, "items": {"type": "integer"}})
    task = asyncio.create_task(babbling.reply(request))
    await asyncio.sleep(0.1)

    task.cancel()

    with pytest.raises((asyncio.CancelledError, RequestCancelledError)):
        await task
    assert (await asyncio.wait_for(babbling.reply(replace(ASK, max_tokens=2)), 20)).completion_tokens <= 2


async def test_a_stream_that_is_left_is_cancelled(babbling: Chat) -> None:
    stream = babbling.stream(replace(ASK, max_tokens=1500, pattern="[a-z ]+"))
    first = await anext(stream)
    await stream.aclose()

    assert first
    assert (await asyncio.wait_for(babbling.reply(replace(ASK, max_tokens=2)), 20)).completion_tokens <= 2


async def test_the_next_message_of_a_conversation_reads_the_last_from_the_cache(babbling: Chat) -> None:
    first = await babbling.reply(replace(ASK, max_tokens=8))
    messages = (*ASK.messages, Message("assistant", first.content), Message("user", "And now?"))

    second = await babbling.reply(replace(ASK, messages=messages, max_tokens=8))

    assert second.cached_tokens >= first.prompt_tokens // 2
