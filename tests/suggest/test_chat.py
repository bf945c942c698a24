"""Conversations with a model that says what it is told to, and with one that says anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import pytest
import torch
from tests.engine.conftest import Placed
from torch import Tensor

from calomel.engine import BlockCausal, Engine, ModelConfig
from calomel.infer.chat import Chat, ChatRequest, Reply
from calomel.infer.completer import CanvasText
from calomel.infer.filler import Filler
from calomel.prompts.chat import Call, Function, Message
from calomel.prompts.chat_template import ChatTemplate
from calomel.prompts.tokenizer import Tokenizer

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


class Speaking(Placed):
    """Says `text` behind the context of the first request, on a canvas and causally, and then ends."""

    def __init__(self, config: ModelConfig, tokenizer: Tokenizer) -> None:
        super().__init__(config)
        self.tokenizer = tokenizer
        self.said: list[int] = []
        self.context = 0

    def logits(self, hidden: Tensor) -> Tensor:
        rows = torch.full((len(hidden), self.config.vocab_size), -20.0)
        for row, (_, position) in zip(rows, hidden.tolist(), strict=True):
            place = int(position) - self.context
            row[self.said[place] if 0 <= place < len(self.said) else self.tokenizer.end] = 0.0
        return rows


def chat_of(filler: Filler) -> Chat:
    numbers = count(1)
    return Chat(filler, ChatTemplate({"default": SOURCE}), lambda: f"call_{next(numbers)}")


@pytest.fixture
def says(filler: Filler, tokenizer: Tokenizer) -> Iterator[Callable[[str, ChatRequest], Chat]]:
    """A chat whose answer to a request is a given text."""
    engines: list[Engine] = []

    def make(text: str, request: ChatRequest) -> Chat:
        assert isinstance(filler.engine.config, ModelConfig)
        model = Speaking(filler.engine.config, tokenizer)
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


Says = Callable[[str, ChatRequest], Chat]


@pytest.mark.parametrize(
    ("text", "content", "thought", "calls"),
    [
        ("plain <| text >", "plain <| text >", "", ()),
        ("<think>\nLet me see.\n</think>\n\nNine.", "Nine.", "Let me see.", ()),
        ("<think>never done", "", "never done", ()),
        ('Wait.\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>', "Wait.", "", (Call("now", "{}"),)),
        (
            '<think>hm</think><tool_call>{"name":"now"}</tool_call><tool_call>{"name":"add","arguments":{"a":3}}</tool_call>',
            "",
            "hm",
            (Call("now", "{}"), Call("add", '{"a": 3}')),
        ),
        ("<tool_call>{broken</tool_call> x", "<tool_call>{broken</tool_call> x", "", ()),
        ("ends with <tool_", "ends with <tool_", "", ()),
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


async def test_a_thought_that_the_prompt_begins_is_none_of_the_content(says: Says) -> None:
    request = replace(ASK, effort="high")
    chat = says("Let me see.\n</think>\n\nNine.", request)

    reply = await chat.reply(request)
    pieces = [piece async for piece in chat.stream(request)]
    states = [state async for state in chat.canvases(request)]

    assert (reply.thought, reply.content) == ("Let me see.", "Nine.")
    assert "".join(piece for piece in pieces if isinstance(piece, str)) == "Nine."
    assert not any("Let me" in state.text for state in states if isinstance(state, CanvasText))
