"""A region to rewrite as an instruction in a model's own chat template, answered in a fenced block.

The block is opened for the model, so that its first token is code. Control tokens in a user's text are plain text
(`calomel.prompts.chat_template`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from calomel.prompts.chat import Message
from calomel.prompts.chat_template import ChatPrompt, ChatTemplate, ChatTemplateError
from calomel.prompts.own import FimTokens, diff_text
from calomel.prompts.parts import EditRegion, Excerpt, PromptParts
from calomel.prompts.renderer import SEAMS, PlainAnswer, fit
from calomel.prompts.tokenizer import TextTokenizer, TokenizerError

_OPENING: Final = re.compile(r"\s*(?P<fence>`{3,})[^\n`]*\n")
_CLOSING: Final = re.compile(r"(?:^|(?<=\n))(?P<fence>`{3,})[ \t]*(?=\n|$)")
# The end of an unfinished text that may become the closing fence.
_MAY_CLOSE: Final = re.compile(r"\n?`*[ \t]*\Z")
_START, _END, _CURSOR = "<REGION>", "</REGION>", "<CURSOR>"

_REWRITE: Final = (
    f"You are editing the file below. Rewrite the lines between {_START} and {_END} as they should be after the "
    f"next edit. {_CURSOR} marks the cursor. Continue the recent changes. If nothing should change, repeat the "
    "lines unchanged. Do not include the markers and do not explain."
)


class ChatRenderer:
    """Asks for a region in words.

    Args:
        template: the checkpoint's.
        tokenizer: the checkpoint's.
        ends: ids that end an answer.

    Raises:
        TokenizerError: the template rejects a single user message.
    """

    def __init__(self, template: ChatTemplate, tokenizer: TextTokenizer, ends: Sequence[int]) -> None:
        self._prompt = ChatPrompt(template, tokenizer)
        self._tokenizer = tokenizer
        self._plain = PlainAnswer(tokenizer, ends)
        try:
            self._around = len(self._ids(PromptParts(), EditRegion("")))
        except ChatTemplateError as error:
            raise TokenizerError(f"the checkpoint does not work with its chat template: {error}") from error

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """The window gets three quarters of the room, and any rest; then recent changes, then other files."""
        region = parts.region or EditRegion("")
        fixed = self._around + SEAMS + self._count(parts.path or "") + self._count(region.text)
        shown, ids, cut = fit(
            parts, max_context, max_context - fixed, self._tokenizer, lambda shown: self._ids(shown, region)
        )
        return FimTokens(tuple(ids), reuse=len(ids), cut=cut, closing=_fence(shown, region))

    def read(self, ids: Sequence[int], *, whole: bool = True) -> str:
        """The text in the block."""
        return inside(self._plain.read(ids), whole=whole)

    def ended(self, ids: Sequence[int]) -> bool:
        """Whether the block is closed, or the answer over."""
        return self._plain.ended(ids) or closed(self._plain.read(ids))

    def shown(self, text: str) -> str:
        """A canvas' text without what belongs to the fences."""
        return inside(text)

    def _ids(self, parts: PromptParts, region: EditRegion) -> list[int]:
        fence = _fence(parts, region)
        message = Message("user", _words(parts, region, fence))
        # Qwen3 and its kin think aloud unless told not to; other templates ignore the variable.
        ids = self._prompt.render([message], enable_thinking=False)
        return [*ids, *self._tokenizer.encode(f"{fence}\n")]

    def _count(self, text: str) -> int:
        return len(self._tokenizer.encode(text)) if text else 0


def _words(parts: PromptParts, region: EditRegion, fence: str) -> str:
    """The instruction and the surroundings of the region."""
    said = [_REWRITE, f"Answer with one code block only, fenced with {fence}."]
    said += [_file("From", excerpt, fence) for excerpt in parts.related]
    if parts.edits:
        changes = "".join(f"{hunk.path}\n{diff_text(hunk)}" for hunk in parts.edits)
        said.append(f"Recent changes, oldest first:\n{fence_for(changes)}diff\n{changes}{fence_for(changes)}")
    body = f"{parts.prefix}{_START}\n{_marked(region)}{_END}\n{parts.suffix}"
    name = f"The file {parts.path}" if parts.path else "The file"
    said.append(f"{name}:\n{fence}\n{_ended(body)}{fence}")
    return "\n\n".join(said)


def _file(word: str, excerpt: Excerpt, fence: str) -> str:
    own = max(fence, fence_for(excerpt.text), key=len)
    return f"{word} {excerpt.path}:\n{own}\n{_ended(excerpt.text)}{own}"


def _marked(region: EditRegion) -> str:
    if region.cursor is None:
        return _ended(region.text)
    return _ended(f"{region.text[: region.cursor]}{_CURSOR}{region.text[region.cursor :]}")


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _fence(parts: PromptParts, region: EditRegion) -> str:
    return fence_for(f"{parts.prefix}{parts.suffix}{region.text}")


def fence_for(text: str) -> str:
    """A fence that does not occur in `text`."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest + 1)


def closed(text: str) -> bool:
    """Whether the block, which was opened for the model, is closed."""
    return _end(text) is not None


def inside(text: str, *, whole: bool = True) -> str:
    """The text in the block, which was opened for the model; if the model opens it again, that block counts.

    The line end before the closing fence belongs to the fence. With `whole` false the text may continue, and what may
    still become the closing fence is left out.
    """
    opening = _OPENING.match(text)
    end = _end(text)
    if opening is not None:
        text, end = text[opening.end() :], None if end is None else end - opening.end()
    elif not whole and text.lstrip().startswith("`"):
        return ""
    if end is not None:
        return text[:end].removesuffix("\n").removesuffix("\r")
    return text if whole else _MAY_CLOSE.sub("", text)


def _end(text: str) -> int | None:
    """Where the closing fence starts."""
    opening = _OPENING.match(text)
    found = _CLOSING.search(text, 0 if opening is None else opening.end())
    return None if found is None else found.start()
