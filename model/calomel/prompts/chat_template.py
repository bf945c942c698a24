"""A checkpoint's chat template: how it writes a conversation. Jinja in a sandbox with a budget; then token ids.

Templates come with a model, never with a request; what clients send is data in them. Even so a loop over hostile
messages must end, so repetition and ranges are counted, and the text is measured while it grows.

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
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from calomel.prompts.chat import Function, Message
from calomel.prompts.tokenizer import TextTokenizer
from calomel.storage import read_object

TEMPLATE_FILE: Final = "chat_template.jinja"
CONFIG_FILE: Final = "tokenizer_config.json"

MAX_TEMPLATE_CHARACTERS: Final = 1_000_000
MAX_RENDERED_CHARACTERS: Final = 8_000_000
# Steps of ranges per rendering, and the length of a repeated text: templates count messages and indent.
MAX_COUNTED: Final = 100_000
_MAX_EXPONENT: Final = 64
# Rounds of loops and calls of macros per rendering, which take some tenths of a second.
_MAX_STEPS: Final = 200_000
_STEP: Final = "calomel_step"

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
        environment = _Environment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, "jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        self._tokens = dict(tokens or {})
        self._now = now
        self._templates = {}
        for name, source in sources.items():
            if len(source) > MAX_TEMPLATE_CHARACTERS:
                raise ChatTemplateError(f"the chat template is longer than {MAX_TEMPLATE_CHARACTERS} characters")
            try:
                self._templates[name] = environment.from_string(source)
            except (TemplateError, RecursionError) as error:
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
        if file.is_file():
            try:
                sources[_WITHOUT_TOOLS] = file.read_text(encoding="utf-8")
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
        counted = _Counted()
        data = {
            **self._tokens,
            **more,
            "messages": list(messages),
            "tools": list(tools) or None,
            "documents": None,
            "add_generation_prompt": True,
            "range": counted.range,
            _STEP: counted.step,
            "raise_exception": _refuse,
            "strftime_now": lambda form: self._now().strftime(form),
        }
        try:
            return _bounded(self._templates[chosen], data)
        except ChatTemplateError:
            raise
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
            raise ChatTemplateError("the model's chat template does not take these messages") from None


def _bounded(template: Template, data: Mapping[str, Any]) -> str:
    pieces, length = [], 0
    for piece in template.generate(data):
        length += len(piece)
        if length > MAX_RENDERED_CHARACTERS:
            raise ChatTemplateError("the conversation is too long for the chat template")
        pieces.append(piece)
    return "".join(pieces)


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**"})

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """The template, with every round of a loop and every call of a macro counted."""
        template = super()._parse(source, name, filename)
        blocks: list[nodes.For | nodes.Macro] = [*template.find_all(nodes.For), *template.find_all(nodes.Macro)]
        for block in blocks:
            step = nodes.Call(nodes.Name(_STEP, "load"), [], [], None, None)
            block.body.insert(0, nodes.ExprStmt(step).set_lineno(block.lineno))
        return template

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**":
            sizes = [side for side in (left, right) if isinstance(side, int | float)]
            if any(abs(side) > _MAX_EXPONENT for side in sizes):
                raise SecurityError("a power in a template is too large")
        for many, times in ((left, right), (right, left)):
            if isinstance(times, int) and hasattr(many, "__len__") and len(many) * times > MAX_COUNTED:
                raise SecurityError("a repetition in a template is too long")
        return super().call_binop(context, operator, left, right)


class _Counted:
    """Counts the ranges of one rendering, and the rounds of its loops."""

    def __init__(self) -> None:
        self._left = MAX_COUNTED
        self._steps = _MAX_STEPS

    def step(self) -> None:
        """Another round of a loop, or a call of a macro."""
        self._steps -= 1
        if self._steps < 0:
            raise SecurityError("a template takes too many steps")

    def range(self, *bounds: int) -> range:
        """`range` while the budget lasts."""
        found = range(*bounds)
        self._left -= len(found)
        if self._left < 0:
            raise SecurityError("the ranges of a template are too long")
        return found


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
