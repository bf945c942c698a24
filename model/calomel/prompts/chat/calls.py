"""Calls of functions in a model's text: JSON between tags, as Hermes and Qwen write them.

<tool_call>
{"name": "weather", "arguments": {"place": "Oslo"}}
</tool_call>
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from calomel.prompts.answer_form import AnswerForm, embedded
from calomel.prompts.chat.conversation import Call, Function

OPENING: Final = "<tool_call>"
CLOSING: Final = "</tool_call>"


@dataclass(frozen=True, slots=True)
class Spoken:
    """What an answer says: text for people, and calls."""

    content: str
    calls: tuple[Call, ...] = ()


def read_calls(text: str, functions: Sequence[Function]) -> Spoken:
    """Take the calls of known functions out of `text`; what is not a whole call of one stays text."""
    names = {function.name for function in functions}
    content, calls, at = [], [], 0
    while (start := text.find(OPENING, at)) >= 0:
        end = text.find(CLOSING, start)
        if end < 0:
            break
        call = _call(text[start + len(OPENING) : end])
        behind = end + len(CLOSING)
        if call is not None and call.name in names:
            content.append(text[at:start])
            calls.append(call)
        else:
            content.append(text[at:behind])
        at = behind
    content.append(text[at:])
    if not calls:
        return Spoken(text)
    # The line ends before and between the calls are of the format.
    return Spoken("".join(content).rstrip(), tuple(calls))


def calls_form(functions: Sequence[Function], *, most: int | None = None) -> AnswerForm:
    """At least one call of one of `functions`, and nothing else; at most `most`.

    Raises:
        GrammarError: a function's schema is too large, too deep, or refers to something outside of itself.
    """
    if most == 1:
        return AnswerForm("start: call\n" + _call_rule(functions))
    return AnswerForm('start: call ("\\n" call)*\n' + _call_rule(functions))


def text_or_calls_form(functions: Sequence[Function]) -> AnswerForm:
    """Any text, in which every call that is begun is a whole one of one of `functions`. Raises as `calls_form`."""
    lines = (
        "start: (begun rest)* TEXT",
        f"begun[lazy]: TEXT {json.dumps(OPENING)}",
        r"TEXT: /(?s:.*)/",
        f'rest: "\\n" body {json.dumps(_NEWLINE + CLOSING)}',
        _body_rule(functions),
    )
    return AnswerForm("\n".join(lines) + "\n")


def json_or_calls_form(schema_term: str, functions: Sequence[Function]) -> AnswerForm:
    """Either calls, or the JSON of another term (see `answer_form.embedded`). Raises as `calls_form`."""
    return AnswerForm(f'start: call ("\\n" call)* | answer\nanswer: {schema_term}\n' + _call_rule(functions))


_NEWLINE: Final = "\n"


def _call_rule(functions: Sequence[Function]) -> str:
    start, end = json.dumps(OPENING + _NEWLINE), json.dumps(_NEWLINE + CLOSING)
    return f"call: {start} body {end}\n{_body_rule(functions)}"


def _body_rule(functions: Sequence[Function]) -> str:
    """The JSON of a call, spaced as templates show it; a schema stands alone, so that `$ref` finds its root."""
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
    # Some models say `parameters`; a function without any may be called without the field.
    arguments = found.get("arguments", found.get("parameters", {}))
    return Call(found["name"], arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False))
