"""Conversations: messages, functions that may be called, and a chat model's replies, finished or still growing.

A call of a function is JSON between tags, as in Hermes and Qwen, and a thought is between tags as well:

    <think> … </think>
    <tool_call>
    {"name": "weather", "arguments": {"place": "Oslo"}}
    </tool_call>
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from calomel.prompts.grammar import AnswerForm, embedded

_OPENING: Final = "<tool_call>"
_CLOSING: Final = "</tool_call>"
# The start of a call, as a term of a grammar.
_CALL_START: Final = json.dumps(f"{_OPENING}\n")
_CALL_END: Final = json.dumps(f"\n{_CLOSING}")
# How Qwen, DeepSeek and their kin mark what is not meant for the reader.
THOUGHT_OPENING: Final = "<think>"
_THOUGHT_CLOSING: Final = "</think>"


@dataclass(frozen=True, slots=True)
class Call:
    """A function that the model wants called. `arguments` is JSON, as the model or the client wrote it."""

    name: str
    arguments: str
    id: str = ""

    def described(self) -> dict[str, Any]:
        """As templates read it; they write arguments as JSON themselves, so JSON ones are given as data."""
        try:
            arguments = json.loads(self.arguments)
        except ValueError:
            arguments = self.arguments
        function = {"name": self.name, "arguments": arguments}
        return {"id": self.id, "type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        role: who speaks: system, user, assistant or tool.
        content: the text.
        name: of the speaker, or of the function whose result this is.
        calls: made by an assistant.
        call_id: of the call that this is the result of.
    """

    role: str
    content: str = ""
    name: str | None = None
    calls: tuple[Call, ...] = ()
    call_id: str | None = None

    def described(self) -> dict[str, Any]:
        """As templates read it; absent fields are left undefined."""
        found: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.name is not None:
            found["name"] = self.name
        if self.calls:
            found["tool_calls"] = [call.described() for call in self.calls]
        if self.call_id is not None:
            found["tool_call_id"] = self.call_id
        return found


@dataclass(frozen=True, slots=True)
class Function:
    """A function that may be called: its arguments are an object that the schema `parameters` allows."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    strict: bool = False

    def described(self) -> dict[str, Any]:
        """As templates read it."""
        function: dict[str, Any] = {"name": self.name, "description": self.description}
        if self.parameters is not None:
            function["parameters"] = self.parameters
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer's parts: `content` for the reader, `thought` that led to it, `calls` of functions."""

    content: str
    thought: str = ""
    calls: tuple[Call, ...] = ()


def read_reply(text: str, functions: Sequence[Function] = ()) -> Reading:
    """Split a finished answer into its parts; calls are read if there are `functions` that may be called."""
    thought, said = split_thought(text)
    content, calls = _read_calls(said, functions) if functions else (said, ())
    return Reading(content, thought, calls)


def _read_calls(text: str, functions: Sequence[Function]) -> tuple[str, tuple[Call, ...]]:
    """Split the calls of known functions off `text`; what is not a complete call of one stays text."""
    names = {function.name for function in functions}
    content, calls, at = [], [], 0
    while (start := text.find(_OPENING, at)) >= 0:
        end = text.find(_CLOSING, start)
        if end < 0:
            break
        call = _call(text[start + len(_OPENING) : end])
        behind = end + len(_CLOSING)
        if call is not None and call.name in names:
            content.append(text[at:start])
            calls.append(call)
        else:
            content.append(text[at:behind])
        at = behind
    content.append(text[at:])
    if not calls:
        return text, ()
    # Line ends before and between the calls belong to the format.
    return "".join(content).rstrip(), tuple(calls)


def calls_form(functions: Sequence[Function], *, most: int | None = None) -> AnswerForm:
    """At least one call of one of `functions`, and nothing else; at most `most` calls.

    Raises:
        GrammarError: a function's schema is too large or too deep, or refers to something outside of itself.
    """
    more = "" if most == 1 else ' ("\\n" call)*'
    return AnswerForm(f"start: call{more}\n{_call_rule(functions)}")


def text_or_calls_form(functions: Sequence[Function]) -> AnswerForm:
    """Any text, in which every call that is begun is a complete one of `functions`. Raises as `calls_form`."""
    lines = (
        "start: (begun rest)* TEXT",
        f"begun[lazy]: TEXT {json.dumps(_OPENING)}",
        r"TEXT: /(?s:.*)/",
        f'rest: "\\n" body {_CALL_END}',
        _body_rule(functions),
    )
    return AnswerForm("\n".join(lines) + "\n")


def json_or_calls_form(schema_term: str, functions: Sequence[Function]) -> AnswerForm:
    """Either calls, or the JSON of another term (see `answer_form.embedded`). Raises as `calls_form`."""
    return AnswerForm(f'start: call ("\\n" call)* | answer\nanswer: {schema_term}\n' + _call_rule(functions))


def _call_rule(functions: Sequence[Function]) -> str:
    return f"call: {_CALL_START} body {_CALL_END}\n{_body_rule(functions)}"


def _body_rule(functions: Sequence[Function]) -> str:
    """The JSON of a call, spaced as in templates; a schema is a root of its own, so that `$ref` resolves."""
    rules = ["body: " + " | ".join(f"body_{number}" for number in range(len(functions)))]
    for number, function in enumerate(functions):
        opening = f'{{"name": {json.dumps(function.name)}, "arguments": '
        rules.append(f"body_{number}: {json.dumps(opening)} arguments_{number} {json.dumps('}')}")
        rules.append(f"arguments_{number}: {embedded(_arguments(function))}")
    return "\n".join(rules) + "\n"


def _arguments(function: Function) -> Mapping[str, Any]:
    parameters = function.parameters or {}
    return parameters if "$ref" in parameters else {"type": "object", **parameters}


def _call(text: str) -> Call | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return None
    # Some models say `parameters`; for a function without any the field may be missing.
    arguments = found.get("arguments", found.get("parameters", {}))
    return Call(found["name"], arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False))


def split_thought(text: str) -> tuple[str, str]:
    """The thought that `text` begins with, without its tags, and the rest; an unclosed thought takes all of it."""
    start = text.lstrip()
    if not start.startswith(THOUGHT_OPENING):
        return "", text
    thought, closed, said = start.removeprefix(THOUGHT_OPENING).partition(_THOUGHT_CLOSING)
    return thought.strip(), said.lstrip("\n") if closed else ""


def shown_so_far(text: str, functions: Sequence[Function] = ()) -> str:
    """The part of a growing answer's content that is final: a beginning of what `read_reply` will find."""
    start = text.lstrip()
    if THOUGHT_OPENING.startswith(start) and len(start) < len(THOUGHT_OPENING):
        return ""
    _, said = split_thought(text)
    if not functions:
        return said
    said = said[: said.index(_OPENING)] if _OPENING in said else _without_beginning(said)
    # Line ends before a call belong to the format.
    return said.rstrip()


def _without_beginning(text: str) -> str:
    """`text` without a possible beginning of a call's tag at its end."""
    sizes = range(len(_OPENING) - 1, 0, -1)
    size = next((size for size in sizes if text.endswith(_OPENING[:size])), 0)
    return text[: len(text) - size]
