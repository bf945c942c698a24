"""The next-edit formats that other makers' models were trained on: how each shows a region, and its answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from calomel.prompts import sweep, zeta
from calomel.prompts.own import FimTokens, Reply
from calomel.prompts.parts import EditRegion, PromptParts, RegionBounds
from calomel.prompts.renderer import SEAMS, PlainAnswer, fit
from calomel.prompts.tokenizer import TextTokenizer


@dataclass(frozen=True, slots=True)
class EditFormat:
    """One format.

    Attributes:
        write: gives the prompt about a region as one text, and how its answer encodes the new region.
        tokens: special tokens of a prompt that a tokenizer may have.
        ends: texts that end an answer.
        fim: name of the fill-in-the-middle format that the same models were trained on (`calomel.prompts.fim_tokens`).
        region: bounds of a region, as in training.
    """

    write: Callable[[PromptParts], tuple[str, Reply]]
    tokens: tuple[str, ...]
    ends: tuple[str, ...]
    fim: str
    region: RegionBounds


# 350 tokens of three bytes around the cursor, as Zed counts them.
_ZETA: Final = EditFormat(
    partial(zeta.write_zeta, blocks=True),
    (zeta.SUFFIX, zeta.PREFIX, zeta.MIDDLE, zeta.FILE),
    (zeta.END,),
    "seed",
    RegionBounds(above=15, below=15, characters=1050),
)
# 21 lines, unless they are too long for an answer of 512 tokens.
_SWEEP: Final = EditFormat(
    partial(sweep.write_sweep, second=False),
    (sweep.FILE,),
    sweep.ENDS,
    "qwen",
    RegionBounds(above=10, below=10, characters=1500),
)
EDIT_FORMATS: Final[Mapping[str, EditFormat]] = {
    "zeta2": replace(_ZETA, write=partial(zeta.write_zeta, blocks=False)),
    "zeta2.1": _ZETA,
    "sweep": _SWEEP,
    "sweep-v2": replace(_SWEEP, write=partial(sweep.write_sweep, second=True)),
}
# What its makers, and those who converted a model, call it.
_CALLED: Final = {
    "zeta2": re.compile(r"zeta[-_ ]?2(?![-_.]?1)", re.IGNORECASE),
    "zeta2.1": re.compile(r"zeta[-_ ]?2[-_.]1", re.IGNORECASE),
    "sweep": re.compile(r"sweep-next-edit(?!-v2)", re.IGNORECASE),
    "sweep-v2": re.compile(r"sweep-next-edit-v2", re.IGNORECASE),
}


def format_called(name: str) -> str | None:
    """The format of a model of this name; None if the name says nothing."""
    return next((form for form, called in _CALLED.items() if called.search(name)), None)


# Vendors' services, and whatever else was trained on edits, in formats that are not ours to write.
_HOSTED: Final = re.compile(r"mercury|copilot|sweepapi", re.IGNORECASE)
_EDITS: Final = re.compile(r"zeta|sweep|instinct|next[-_ ]?edit", re.IGNORECASE)
# Documented for Mercury: from 5 lines above the cursor to 10 below it, and at most 25 lines. A function or file that is
# no larger is shown whole, as its own clients do.
MERCURY_REGION: Final = RegionBounds(above=5, below=10, whole=25)


def class_called(name: str) -> Literal["edits", "hosted"] | None:
    """The class of a model of this name that was trained on edits; None if the name says nothing."""
    return "hosted" if _HOSTED.search(name) else "edits" if _EDITS.search(name) else None


def region_called(name: str) -> RegionBounds:
    """How much a model of this name may rewrite at once."""
    form = format_called(name)
    if form is not None:
        return EDIT_FORMATS[form].region
    return MERCURY_REGION if _HOSTED.search(name) else RegionBounds()


class NextEditRenderer(PlainAnswer):
    """Asks about a region in one of these formats.

    Args:
        tokenizer: the model's.
        ends: ids that end an answer.
        form: the format.
        begin: ids at the start of every context.
    """

    def __init__(
        self, tokenizer: TextTokenizer, ends: Sequence[int], form: EditFormat, begin: Sequence[int] = ()
    ) -> None:
        super().__init__(tokenizer, ends)
        self._form, self._begin = form, tuple(begin)
        self._ids = {name: tokenizer.control[name] for name in form.tokens if name in tokenizer.control}
        self._tokens = re.compile(f"({'|'.join(map(re.escape, form.tokens))})")

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """The window first, then recent changes, then other files."""
        region = parts.region or EditRegion("")
        around = parts.prefix + region.text + parts.suffix
        parts = replace(parts, far=tuple(each for each in parts.far if each.text not in around))
        room = max_context - len(self._begin) - 2 * len(self._tokenizer.encode(region.text)) - SEAMS
        shown, ids, cut = fit(parts, max_context, room, self._tokenizer, self._written)
        return FimTokens(tuple(ids), reuse=len(ids), cut=cut, reply=self._form.write(shown)[1])

    def _written(self, parts: PromptParts) -> list[int]:
        ids = list(self._begin)
        for piece in self._tokens.split(self._form.write(parts)[0]):
            ids += [self._ids[piece]] if piece in self._ids else self._tokenizer.encode(piece)
        return ids
