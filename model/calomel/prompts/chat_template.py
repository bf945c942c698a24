"""A checkpoint's chat template: how it writes a conversation. Jinja with a budget, then token ids.

Templates come with a model, never with a request; what clients send is data in them. Neither needs to be anybody's
whom the user trusts: see `template_sandbox`.

Only the template writes control tokens: in a user's text they are plain text. Before the template is rendered, a mark
is inserted into the name of every control token in a client's text. Names found intact in the rendered text are the
template's own; then the marks are removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from jinja2 import Template, TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

from calomel.prompts.chat import Function, Message
from calomel.prompts.template_sandbox import MOST_SIZE, Sandbox, limited
from calomel.prompts.tokenizer import TextTokenizer
from calomel.storage import read_object, read_whole

TEMPLATE_FILE: Final = "chat_template.jinja"
CONFIG_FILE: Final = "tokenizer_config.json"

# Ten times the longest published one; a longer one takes seconds to parse.
MAX_TEMPLATE_CHARACTERS: Final = 250_000
# Of the form of a date.
_MOST_DATE: Final = 200

_WITH_TOOLS: Final = "tool_use"
_WITHOUT_TOOLS: Final = "default"
# Code points that are noncharacters (Unicode 17, section 23.7): one that no client has sent becomes the mark.
_MARKS: Final = tuple(chr(code) for code in range(0xFDD0, 0xFDF0))


class ChatTemplateError(ValueError):
    """There is no usable template, or it rejects these messages. The message never quotes them."""


class ChatTemplate:
    """The templates of one checkpoint.

    Args:
        sources: by name; `tool_use`, if there is one, is used when there are tools, else `default`.
        tokens: names that templates use for control tokens, such as `bos_token`, with their texts.
        now: the time, for templates that tell the model the date.
    """

    def __init__(
        self,
        sources: Mapping[str, str],
        tokens: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        environment = Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, "jinja2.ext.loopcontrols"])
        environment.add_filter("tojson", _to_json)
        self._tokens = dict(tokens or {})
        self._now = now
        self._templates = {}
        for name, source in sources.items():
            if len(source) > MAX_TEMPLATE_CHARACTERS:
                raise ChatTemplateError(f"the chat template is longer than {MAX_TEMPLATE_CHARACTERS} characters")
            try:
                self._templates[name] = environment.from_string(source)
            except Exception as error:  # (of Python's own parser, too, which reads what Jinja writes)
                raise ChatTemplateError(f"the chat template does not parse: {type(error).__name__}") from error

    @classmethod
    def of(cls, folder: Path) -> ChatTemplate | None:
        """The template in a checkpoint's folder; None if it has none, so that it cannot chat.

        Raises:
            ChatTemplateError: there is one, but it cannot be used.
        """
        config = read_object(folder / CONFIG_FILE, ChatTemplateError)
        sources = _sources(config.get("chat_template"))
        file = folder / TEMPLATE_FILE
        if file.exists():
            try:
                sources[_WITHOUT_TOOLS] = read_whole(file).decode("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise ChatTemplateError(f"cannot read {TEMPLATE_FILE}: {type(error).__name__}") from error
            sources.pop(_WITH_TOOLS, None)
        if _WITHOUT_TOOLS not in sources:
            return None
        return cls(sources, _tokens(config))

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = (), **more: Any
    ) -> str:
        """The conversation as the model reads it, up to where its answer begins.

        Raises:
            ChatTemplateError: the template refuses these messages, or exceeds its budget.
        """
        chosen = _WITH_TOOLS if tools and _WITH_TOOLS in self._templates else _WITHOUT_TOOLS
        with limited() as budget:
            return self._rendered(self._templates[chosen], messages, tools, {**more, **budget.names()})

    def _rendered(
        self,
        template: Template,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        more: Mapping[str, Any],
    ) -> str:
        data = {
            **self._tokens,
            **more,
            "messages": list(messages),
            "tools": list(tools) or None,
            "documents": None,
            "add_generation_prompt": True,
            "raise_exception": _refuse,
            "strftime_now": lambda form: self._now().strftime(form[:_MOST_DATE]),
        }
        try:
            return _bounded(template, data)
        except ChatTemplateError:
            raise
        except (
            TemplateError,
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            RecursionError,
            MemoryError,
        ):
            raise ChatTemplateError("the model's chat template does not take these messages") from None


def _bounded(template: Template, data: Mapping[str, Any]) -> str:
    pieces, length = [], 0
    for piece in template.generate(data):
        length += len(piece)
        if length > MOST_SIZE:
            raise ChatTemplateError("the conversation is too long for the chat template")
        pieces.append(piece)
    return "".join(pieces)


class _Generation(Extension):
    """`{% generation %}`, with which trainers mark the model's own text: renders its contents, nothing more."""

    tags = {"generation"}  # noqa: RUF012 (as the library declares it)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The statements in the block."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _refuse(message: str) -> None:
    del message  # may quote a client
    raise ChatTemplateError("the model's chat template does not take these messages")


def _to_json(
    value: Any,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 (templates pass these by position)
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002
) -> str:
    # Jinja's own filter escapes for HTML, which models never saw in training.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _sources(found: Any) -> dict[str, str]:
    """One text, or a list of named ones."""
    if isinstance(found, str):
        return {_WITHOUT_TOOLS: found}
    entries = [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
    pairs = [(entry.get("name"), entry.get("template")) for entry in entries]
    return {name: text for name, text in pairs if isinstance(name, str) and isinstance(text, str)}


def _tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """Texts of the control tokens; a token is a text or an object with a `content`."""
    texts = {name: value.get("content") if isinstance(value, dict) else value for name, value in config.items()}
    return {name: text for name, text in texts.items() if name.endswith("_token") and isinstance(text, str)}


class ChatPrompt:
    """Writes conversations for one checkpoint. Safe to share."""

    def __init__(self, template: ChatTemplate, tokenizer: TextTokenizer) -> None:
        self._template = template
        self._tokenizer = tokenizer
        names = sorted(tokenizer.control, key=len, reverse=True)
        self._names = re.compile("|".join(re.escape(name) for name in names))

    def render(self, messages: Sequence[Message], functions: Sequence[Function] = (), **more: Any) -> list[int]:
        """The ids of a conversation, up to where the answer begins; `more` are variables of the template.

        Raises:
            ChatTemplateError: the template rejects these messages.
        """
        try:
            told = [message.described() for message in messages]
            tools = [function.described() for function in functions]
            mark = _unused([told, tools])
            text = self._template.render(self._marked(told, mark), self._marked(tools, mark), **more)
        except RecursionError:
            raise ChatTemplateError("the messages are nested too deeply") from None
        ids: list[int] = []
        at = 0
        for found in self._names.finditer(text):
            ids += self._tokenizer.encode(text[at : found.start()].replace(mark, ""))
            ids.append(self._tokenizer.control[found[0]])
            at = found.end()
        return [*ids, *self._tokenizer.encode(text[at:].replace(mark, ""))]

    def _marked(self, value: Any, mark: str) -> Any:
        if isinstance(value, str):
            return self._names.sub(lambda found: found[0][0] + mark + found[0][1:], value)
        if isinstance(value, Mapping):
            return {self._marked(key, mark): self._marked(each, mark) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._marked(each, mark) for each in value]
        return value


def _unused(value: Any) -> str:
    """A mark that does not occur in `value`."""
    text = json.dumps(value, ensure_ascii=False)
    mark = next((mark for mark in _MARKS if mark not in text), None)
    if mark is None:
        raise ChatTemplateError("the messages contain invalid code points")
    return mark
