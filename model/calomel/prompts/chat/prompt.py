"""From a conversation to token ids. Only the template writes control tokens: in a user's text they are mere text.

Before the template is rendered, a mark is put into every control token's name that stands in a client's text. The names
that are found whole in the rendered text are the template's own; the marks are taken out again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from calomel.prompts.chat.conversation import Function, Message
from calomel.prompts.chat.template import ChatTemplate, ChatTemplateError
from calomel.prompts.text_tokenizer import TextTokenizer

# Code points that are no characters (Unicode 17, section 23.7): one of them that no client has sent is the mark.
_MARKS: Final = tuple(chr(code) for code in range(0xFDD0, 0xFDF0))


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
            ChatTemplateError: the template does not take these messages.
        """
        try:
            told = [message.described() for message in messages]
            tools = [function.described() for function in functions]
            mark = _unused([told, tools])
            text = self._template.render(self._marked(told, mark), self._marked(tools, mark), **more)
        except RecursionError:
            raise ChatTemplateError("the messages are nested too deep") from None
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
    """A mark that stands nowhere in `value`."""
    left = set(_MARKS)
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            left -= set(found) if not found.isascii() else set()
        elif isinstance(found, Mapping):
            waiting += [*found.keys(), *found.values()]
        elif isinstance(found, list | tuple):
            waiting += found
    if not left:
        raise ChatTemplateError("the messages have code points that are no characters")
    return min(left)
