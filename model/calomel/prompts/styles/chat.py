"""A hole, or a region to rewrite, as an instruction in a model's own chat template, answered in a fenced block.

The block is opened for the model, so that its first token is code. Control tokens that stand in a user's text are mere
text (`calomel.prompts.chat.prompt`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calomel.prompts.chat.conversation import Message
from calomel.prompts.chat.prompt import ChatPrompt
from calomel.prompts.chat.template import ChatTemplate, ChatTemplateError
from calomel.prompts.context import diff_text
from calomel.prompts.fim import FimTokens
from calomel.prompts.parts import EditRegion, Excerpt, PromptParts
from calomel.prompts.styles.fence import closed, fence_for, inside
from calomel.prompts.styles.plain import PlainAnswer
from calomel.prompts.styles.window import window
from calomel.prompts.text_tokenizer import TextTokenizer, TokenizerError

_HOLE: Final = "<MIDDLE>"
_START, _END, _CURSOR = "<REGION>", "</REGION>", "<CURSOR>"

_FILL: Final = (
    f"Below is a file with a hole, marked {_HOLE}. Write the text that belongs in place of the mark. It may begin and "
    "end within a line. Repeat nothing of what stands before or behind the mark, and explain nothing."
)
_REWRITE: Final = (
    f"Below is a file that is being edited. Rewrite the lines between {_START} and {_END} as they should be after the "
    f"next edit; {_CURSOR} is where the cursor is. Follow the recent changes. If nothing is to be changed, repeat the "
    "lines as they are. Leave the marks out, and explain nothing."
)
# Of the room: for recent changes, and for other files.
_SHARE: Final = 4
# Where two texts meet, tokens of both may become more than they were apart.
_SEAMS: Final = 24
_ATTEMPTS: Final = 4


class ChatRenderer:
    """Asks for a hole or a region in words.

    Args:
        template: of the checkpoint.
        tokenizer: of the checkpoint.
        ends: ids that end an answer.

    Raises:
        TokenizerError: the template does not take one message of a user.
    """

    def __init__(self, template: ChatTemplate, tokenizer: TextTokenizer, ends: Sequence[int]) -> None:
        self._prompt = ChatPrompt(template, tokenizer)
        self._tokenizer = tokenizer
        self._plain = PlainAnswer(tokenizer, ends)
        try:
            self._around = len(self._ids(PromptParts(), ""))
            self._around_region = len(self._ids(PromptParts(region=EditRegion("", 0)), ""))
        except ChatTemplateError as error:
            raise TokenizerError(f"the checkpoint can not be asked in its chat template: {error}") from error

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """The window has three quarters of the room, and what it leaves; then recent changes, then other files."""
        region = "" if parts.region is None else parts.region.text
        around = self._around if parts.region is None else self._around_region
        fixed = around + _SEAMS + self._count(parts.path or "") + self._count(region)
        room = max_context - fixed
        ids: list[int] = []
        for _ in range(_ATTEMPTS):
            shown, cut = self._shown(parts, room)
            ids = self._ids(shown, region)
            if len(ids) <= max_context or room <= 0:
                break
            room = min(room - (len(ids) - max_context), room // 2)
        return FimTokens(tuple(ids), reuse=len(ids), cut=cut)

    def read(self, ids: Sequence[int], *, whole: bool = True) -> str:
        """What stands in the block."""
        return inside(self._plain.read(ids), whole=whole)

    def ended(self, ids: Sequence[int]) -> bool:
        """Whether the block is closed, or the answer over."""
        return self._plain.ended(ids) or closed(self._plain.read(ids))

    def shown(self, text: str) -> str:
        """A canvas' text without what is about the block."""
        return inside(text)

    def _shown(self, parts: PromptParts, room: int) -> tuple[PromptParts, bool]:
        """What fits of the parts, and whether the beginning of the prefix is left out."""
        edits = []
        left = room // _SHARE
        for hunk in reversed(parts.edits):
            left -= self._count(diff_text(hunk)) + self._count(hunk.path)
            if left < 0:
                break
            edits.append(hunk)
        taken = sum(self._count(diff_text(hunk)) + self._count(hunk.path) for hunk in edits)
        before, behind = window(parts.prefix, parts.suffix, max(0, room - taken), self._tokenizer)
        prefix, suffix = self._tokenizer.decode(before), self._tokenizer.decode(behind)
        room -= taken + len(before) + len(behind)
        related = []
        for excerpt in reversed((*parts.related, *parts.far)):
            room -= self._count(excerpt.text) + self._count(excerpt.path) + _SEAMS
            if room < 0:
                break
            related.append(excerpt)
        shown = PromptParts(
            related=tuple(reversed(related)),
            edits=tuple(reversed(edits)),
            path=parts.path,
            prefix=prefix,
            suffix=suffix,
            region=parts.region,
        )
        return shown, len(prefix) < len(parts.prefix)

    def _ids(self, parts: PromptParts, region: str) -> list[int]:
        fence = fence_for(f"{parts.prefix}{parts.suffix}{region}")
        message = Message("user", _words(parts, fence))
        # Qwen3 and its kin think aloud unless they are told not to; other templates do not know the word.
        ids = self._prompt.render([message], enable_thinking=False)
        return [*ids, *self._tokenizer.encode(f"{fence}\n")]

    def _count(self, text: str) -> int:
        return len(self._tokenizer.encode(text)) if text else 0


def _words(parts: PromptParts, fence: str) -> str:
    """The instruction and everything around the hole."""
    said = [_FILL if parts.region is None else _REWRITE]
    said += [f"Answer with one block between lines of {fence} alone."]
    said += [_file("From", excerpt, fence) for excerpt in parts.related]
    if parts.edits:
        changes = "".join(f"{hunk.path}\n{diff_text(hunk)}" for hunk in parts.edits)
        said.append(f"Recent changes, the last one last:\n{fence_for(changes)}diff\n{changes}{fence_for(changes)}")
    if parts.region is None:
        body = f"{parts.prefix}{_HOLE}{parts.suffix}"
    else:
        body = f"{parts.prefix}{_START}\n{_marked(parts.region)}{_END}\n{parts.suffix}"
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
