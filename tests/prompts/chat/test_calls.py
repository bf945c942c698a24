"""Calls in a model's text: how they are read, and the grammars that make them right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.prompts.answer_form import AnswerForm, GrammarError, embedded
from calomel.prompts.chat.calls import calls_form, json_or_calls_form, read_calls, text_or_calls_form
from calomel.prompts.chat.conversation import Call, Function
from calomel.prompts.grammar import GrammarCompiler
from calomel.prompts.tokenizer import Tokenizer

ADD = Function(
    "add",
    parameters={
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/n"}},
        "required": ["a"],
        "additionalProperties": False,
        "$defs": {"n": {"type": "integer"}},
    },
)
NOW = Function("now-2", 'Tells "the time".')
FUNCTIONS = (ADD, NOW)
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
OTHER = '<tool_call>\n{"name": "now-2", "arguments": {}}\n</tool_call>'


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        (CALL, "", (Call("add", '{"a": 1}'),)),
        (f"{CALL}\n{OTHER}", "", (Call("add", '{"a": 1}'), Call("now-2", "{}"))),
        (f"Let me see.\n{CALL}", "Let me see.", (Call("add", '{"a": 1}'),)),
        ('<tool_call>{"name":"add","parameters":{"a":"ü"}}</tool_call>', "", (Call("add", '{"a": "ü"}'),)),
        ('<tool_call>{"name":"add","arguments":"{\\"a\\":1}"}</tool_call>', "", (Call("add", '{"a":1}'),)),
        ('<tool_call>{"name":"add"}</tool_call>', "", (Call("add", "{}"),)),
        ("no call", "no call", ()),
        ("<tool_call>{broken</tool_call>", "<tool_call>{broken</tool_call>", ()),
        ('<tool_call>{"name":"unknown","arguments":{}}</tool_call>', None, ()),
        ('<tool_call>{"name": "add", "arguments": {"a"', None, ()),
        ("<tool_call>[1]</tool_call> x", None, ()),
        ("<tool_call>" + "[" * 5000 + "</tool_call>", None, ()),
    ],
)
def test_calls_are_taken_out_of_the_text(text: str, content: str | None, calls: tuple[Call, ...]) -> None:
    spoken = read_calls(text, FUNCTIONS)

    assert spoken.content == (text if content is None else content)
    assert spoken.calls == calls


@given(st.lists(st.sampled_from(["<tool_call>", "</tool_call>", '{"name":"add"}', "x", "\n"])).map("".join))
def test_any_text_can_be_read(text: str) -> None:
    spoken = read_calls(text, FUNCTIONS)

    assert spoken.calls or spoken.content == text


@pytest.mark.parametrize(
    ("form", "text", "fits"),
    [
        (calls_form(FUNCTIONS), CALL, True),
        (calls_form(FUNCTIONS), f"{OTHER}\n{CALL}", True),
        (calls_form(FUNCTIONS), "", False),
        (calls_form(FUNCTIONS), "Sure: " + CALL, False),
        (calls_form(FUNCTIONS), CALL.replace("1", '"1"'), False),
        (calls_form(FUNCTIONS), CALL.replace("add", "sub"), False),
        (calls_form(FUNCTIONS, most=1), CALL, True),
        (calls_form(FUNCTIONS, most=1), f"{CALL}\n{CALL}", False),
        (calls_form((NOW,)), OTHER, True),
        (calls_form((NOW,)), CALL, False),
        (text_or_calls_form(FUNCTIONS), "Just < text > of any kind.\n", True),
        (text_or_calls_form(FUNCTIONS), f"First {CALL}\nthen {OTHER} done", True),
        (text_or_calls_form(FUNCTIONS), "First <tool_call>none", False),
        (json_or_calls_form(embedded({"type": "array"}), FUNCTIONS), "[1, 2]", True),
        (json_or_calls_form(embedded({"type": "array"}), FUNCTIONS), CALL, True),
        (json_or_calls_form(embedded({"type": "array"}), FUNCTIONS), "text", False),
    ],
)
def test_a_form_allows_whole_calls_and_nothing_else(
    tokenizer: Tokenizer, form: AnswerForm, text: str, *, fits: bool
) -> None:
    walk = GrammarCompiler(tokenizer).compile(form).begin()
    ids = tokenizer.encode(text)

    assert (walk.advance(ids) == len(ids) and walk.may_end()) == fits


def test_a_functions_schema_is_checked_like_any_other() -> None:
    with pytest.raises(GrammarError):
        calls_form((Function("f", parameters={"$ref": "http://example.org/x"}),))
