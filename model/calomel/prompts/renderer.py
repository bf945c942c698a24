"""How a family's prompts are described, what callers of a model need of a renderer, and the plainest renderers.

A renderer writes a prompt and reads the text of an answer. Models that read in both directions get prefix and suffix as
they are:

    [begin] prefix  →  answer  ←  suffix [close]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol

from calomel.prompts.own import FimTokens, diff_text, last_tokens
from calomel.prompts.parts import PromptParts
from calomel.prompts.tokenizer import TextTokenizer

EditKind = Literal["zeta2", "zeta2.1", "sweep", "sweep-v2"]
Kind = Literal["calomel", "fim_tokens", "left_to_right", "around", "chat", EditKind]
# A token of code is rarely longer than this on average.
_CHARACTERS_PER_TOKEN: Final = 12
# The suffix gets this part of the room, if the prefix wants the rest.
_SUFFIX_SHARE: Final = 4
# Recent changes, and other files, each get this part of the room.
_SHARE: Final = 4
# Where two texts meet, their tokens may become more than they were separately.
SEAMS: Final = 24
_ATTEMPTS: Final = 4


@dataclass(frozen=True, slots=True)
class PromptStyle:
    """How a family is prompted.

    Attributes:
        fim: how a hole is shown. `calomel`: our own format. `fim_tokens`: with the fill-in-the-middle tokens of its
            tokenizer; if that has none, as in `left_to_right`. `left_to_right`: the text before it alone. `around`: the
            prefix as context and the suffix as the request's `suffix`, for models that read in both directions.
        edit: how a region that may be rewritten is shown. `chat`: as an instruction in the checkpoint's chat template,
            answered in a fenced block. Or the name of a format that it was trained on (`calomel.prompts.next_edit`).
            Otherwise, and without a template, the model fills the hole that the region leaves, as in `fim`: it does not
            see the region's text.
        mask: name of the mask token, so that text never forges it; None if there is none.
        ends: names of the tokens that end an answer, the first is the engine's end token.
        begin: name of a token at the start of every context; None if there is none, or (`fim_tokens`) if the tokenizer
            says it.
        close: name of a token after every suffix (`around` only); None if there is none.
    """

    fim: Kind
    edit: Kind
    mask: str | None
    ends: tuple[str, ...]
    begin: str | None = None
    close: str | None = None

    def all_names(self) -> set[str]:
        """Every token that it names."""
        named = {self.mask, self.begin, self.close, *self.ends}
        return {name for name in named if name is not None}


class PromptRenderer(Protocol):
    """Writes prompts in one style and reads the answers to them. Safe to share."""

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """Token ids of at most `max_context`; what does not fit is left out, the farthest and oldest first."""

    def read(self, ids: Sequence[int], *, whole: bool = True) -> str:
        """The text of an answer; with `whole` false, the beginning of it that further tokens cannot change."""

    def shown(self, text: str) -> str:
        """The text of a canvas, parts of which are still unknown, in a form for people."""


class EndingRenderer(PromptRenderer, Protocol):
    """A renderer whose answers may end otherwise than with the engine's end token."""

    def ended(self, ids: Sequence[int]) -> bool:
        """Whether an answer is over although there was no end token."""


class PlainAnswer:
    """Reads the text up to the first token that ends an answer.

    Args:
        tokenizer: of the model.
        ends: ids that end an answer.
    """

    def __init__(self, tokenizer: TextTokenizer, ends: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._ends = frozenset(ends)

    def read(self, ids: Sequence[int], *, whole: bool = True) -> str:
        """The text; an unfinished answer is read the same way."""
        del whole
        return self._tokenizer.decode(self.before_end(ids))

    def ended(self, ids: Sequence[int]) -> bool:
        """Whether it contains one of the ends."""
        return not self._ends.isdisjoint(ids)

    def shown(self, text: str) -> str:
        """All of it."""
        return text

    def before_end(self, ids: Sequence[int]) -> Sequence[int]:
        """The ids before the first end."""
        return ids[: next((at for at, number in enumerate(ids) if number in self._ends), len(ids))]


def window(prefix: str, suffix: str, room: int, tokenizer: TextTokenizer) -> tuple[list[int], list[int], bool]:
    """Ids of the end of `prefix` and of the beginning of `suffix`, together at most `room`.

    The last value says whether the beginning of the prefix was left out. The suffix gets a quarter, more if the prefix
    needs less. The prefix begins at a line, in hops.
    """
    behind = tokenizer.encode(suffix[: max(0, room) * _CHARACTERS_PER_TOKEN])
    share = min(len(behind), max(0, room) // _SUFFIX_SHARE)
    before, cut = last_tokens(prefix, room - share, tokenizer)
    return before, behind[: max(0, room - len(before))], cut


def fit(
    parts: PromptParts,
    max_context: int,
    room: int,
    tokenizer: TextTokenizer,
    write: Callable[[PromptParts], list[int]],
) -> tuple[PromptParts, list[int], bool]:
    """What is shown of `parts`, the ids that `write` makes of it, and whether the prefix lost its beginning.

    The window gets three quarters of the room, and any rest; then recent changes, then other files.
    """
    ids: list[int] = []
    shown, cut = parts, False
    for _ in range(_ATTEMPTS):
        shown, cut = _shown(parts, room, tokenizer)
        ids = write(shown)
        if len(ids) <= max_context or room <= 0:
            break
        room = min(room - (len(ids) - max_context), room // 2)
    return shown, ids, cut


def _shown(parts: PromptParts, room: int, tokenizer: TextTokenizer) -> tuple[PromptParts, bool]:
    def count(text: str) -> int:
        return len(tokenizer.encode(text))

    edits = []
    left = room // _SHARE
    for hunk in reversed(parts.edits):
        left -= count(diff_text(hunk)) + count(hunk.path)
        if left < 0:
            break
        edits.append(hunk)
    taken = sum(count(diff_text(hunk)) + count(hunk.path) for hunk in edits)
    before, behind, cut = window(parts.prefix, parts.suffix, max(0, room - taken), tokenizer)
    prefix, suffix = tokenizer.decode(before), tokenizer.decode(behind)
    room -= taken + len(before) + len(behind)
    related = []
    for excerpt in reversed((*parts.related, *parts.far)):
        room -= count(excerpt.text) + count(excerpt.path) + SEAMS
        if room < 0:
            break
        related.append(excerpt)
    shown = replace(parts.with_window(prefix, suffix), related=tuple(related[::-1]), far=(), edits=tuple(edits[::-1]))
    return shown, cut


class AroundRenderer(PlainAnswer):
    """Shows a hole by the text before and after it.

    Args:
        tokenizer: of the model.
        ends: ids that end an answer.
        begin: ids at the start of every context.
        close: ids after every suffix.
    """

    def __init__(
        self, tokenizer: TextTokenizer, ends: Sequence[int], begin: Sequence[int] = (), close: Sequence[int] = ()
    ) -> None:
        super().__init__(tokenizer, ends)
        self._begin, self._close = tuple(begin), tuple(close)

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """The text around the hole, or around the region, whose own text is not shown."""
        room = max_context - len(self._begin) - len(self._close) - 1
        before, behind, cut = window(parts.prefix, parts.suffix, room, self._tokenizer)
        context = (*self._begin, *before)
        if not context:
            # A model needs something to begin with: an empty line is what most files could have there.
            context = tuple(self._tokenizer.encode("\n"))
        return FimTokens(context, reuse=len(context), cut=cut, suffix=(*behind, *self._close))
