"""The next-edit formats of other makers' models: how each shows a region, and its answer; and Sweep's in full."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from calomel.prompts import zeta
from calomel.prompts.edit_prompt import ended_like, mended, unforged
from calomel.prompts.own import FimTokens, Reply
from calomel.prompts.parts import EditRegion, Hunk, PromptParts, RegionBounds
from calomel.prompts.renderer import SEAMS, PlainAnswer, fit
from calomel.prompts.tokenizer import TextTokenizer

FILE: Final = "<|file_sep|>"
CURSOR: Final = "<|cursor|>"
ENDS: Final = ("<|endoftext|>", FILE)
# The newest edits that are shown.
_EDITS_SHOWN: Final = 6
# Part of the diffs that they were trained on, not a line of the file.
_NO_LINE_END: Final = re.compile(r"\n?\\? No newline at end of file\s*\Z")


@dataclass(frozen=True, slots=True)
class SweepPrompt:
    """What is needed to read an answer.

    Attributes:
        region: its text.
        lead: what a model writes first, before the region.
        given: the beginning of the region, which is in the prompt.
    """

    region: str
    lead: str
    given: str

    @property
    def guess(self) -> str:
        """As `Reply.guess`."""
        return self.answered(self.region)

    def answered(self, region: str) -> str:
        """As `Reply.answered`."""
        return f"{self.lead}{unforged(region).removeprefix(self.given).removesuffix(chr(10))}"

    def read(self, answer: str) -> str | None:
        """As `Reply.read`: an empty answer keeps the region. The format does not show whether an answer is cut off."""
        # Models repeat the cursor now and then.
        text = _NO_LINE_END.sub("", answer).removeprefix(self.lead).replace(CURSOR, "")
        return ended_like(mended(f"{self.given}{text}"), self.region) if text.strip() else self.region


def write_sweep(parts: PromptParts, *, second: bool) -> tuple[str, SweepPrompt]:
    """A prompt for the first models, or for the `second` ones, and what is needed to read its answer."""
    region = parts.region or EditRegion("")
    first = parts.first_line + parts.prefix.count("\n") + 1
    path, undone = unforged(parts.path or "untitled"), parts.edits if second else parts.edits[-1:]
    before = _before(undone, parts.path, region.text, first - 1)
    edits = parts.edits if second or before == region.text else parts.edits[:-1]
    lines = _lines(first, region.text) if second else ""
    diffs = [_diff(each, second=second) for each in edits[-_EDITS_SHOWN:]]
    sections = [f"{FILE}{unforged(each.path)}\n{unforged(each.text)}" for each in (*parts.related, *parts.far)]
    current, given = unforged(region.text).removesuffix("\n"), ""
    if second:
        sections += [f"{FILE}{path}\n{unforged(parts.prefix + before + parts.suffix)}", "\n".join(diffs)]
        cursor = region.text.find("\n") + 1 if region.cursor is None else region.cursor
        above, behind = unforged(region.text[:cursor]), unforged(region.text[cursor:])
        current, given = f"{above}{CURSOR}{behind}".removesuffix("\n"), above[: above.rfind("\n") + 1]
        if edits and edits[-1].path == parts.path and edits[-1].start_line < first - 1 + above.count("\n"):
            # What was changed above the cursor may have to be continued there.
            line, end, rest = given.partition("\n")
            given = line + end + "\n" * (len(rest) - len(rest.lstrip("\n")))
    else:
        sections += diffs
    sections += [
        f"{FILE}original/{path}{lines}\n{unforged(before).removesuffix(chr(10))}",
        f"{FILE}current/{path}{lines}\n{current}",
        f"{FILE}updated/{path}{lines}",
    ]
    if second:
        sections.append(given)
    return "\n".join(sections), SweepPrompt(region.text, "" if second else "\n", given)


def _before(edits: Sequence[Hunk], path: str | None, text: str, first: int) -> str:
    """`text`, which begins at the line `first`, as it was before the last edits, as far as they were in it."""
    for hunk in reversed(edits):
        lines = text.splitlines(keepends=True)
        row = hunk.start_line - first
        if hunk.path == path and hunk.after.strip() and hunk.after in text:
            text = text.replace(hunk.after, hunk.before, 1)
        elif hunk.path == path and not hunk.after and 0 <= row <= len(lines):
            text = "".join((*lines[:row], hunk.before, *lines[row:]))
        else:
            break
    return text


def _lines(first: int, text: str) -> str:
    return f":{first}:{first + text.removesuffix(chr(10)).count(chr(10))}"


def _diff(hunk: Hunk, *, second: bool) -> str:
    where = _lines(hunk.start_line + 1, hunk.after) if second else ".diff"
    old, new = (unforged(text).strip("\n") for text in (hunk.before, hunk.after))
    return f"{FILE}{unforged(hunk.path)}{where}\noriginal:\n{old}\nupdated:\n{new}"


@dataclass(frozen=True, slots=True)
class EditFormat:
    """One format.

    Attributes:
        write: gives the prompt about a region as one text, and how its answer encodes the new region.
        tokens: special tokens of a prompt that a tokenizer may have.
        ends: texts that end an answer.
        region: bounds of a region, as in training.
    """

    write: Callable[[PromptParts], tuple[str, Reply]]
    tokens: tuple[str, ...]
    ends: tuple[str, ...]
    region: RegionBounds


# 350 tokens of three bytes around the cursor, as Zed counts them.
_ZETA: Final = EditFormat(
    partial(zeta.write_zeta, blocks=True),
    (zeta.SUFFIX, zeta.PREFIX, zeta.MIDDLE, zeta.FILE),
    (zeta.END,),
    RegionBounds(above=15, below=15, characters=1050),
)
# 21 lines, unless they are too long for an answer of 512 tokens.
_SWEEP: Final = EditFormat(
    partial(write_sweep, second=False),
    (FILE,),
    ENDS,
    RegionBounds(above=10, below=10, characters=1500),
)
EDIT_FORMATS: Final[Mapping[str, EditFormat]] = {
    "zeta2": replace(_ZETA, write=partial(zeta.write_zeta, blocks=False)),
    "zeta2.1": _ZETA,
    "sweep": _SWEEP,
    "sweep-v2": replace(_SWEEP, write=partial(write_sweep, second=True)),
}
# What its makers, and those who converted a model, call it.
_CALLED: Final = {
    "zeta2": re.compile(r"zeta[-_ ]?2(?![-_.]?1)", re.IGNORECASE),
    "zeta2.1": re.compile(r"zeta[-_ ]?2[-_.]1", re.IGNORECASE),
    # Files of the first models that end in `.v2` answer the second format: recorded answers (`calomel bench edits`).
    "sweep": re.compile(r"sweep-next-edit(?!-v2|\S*\.v2\b)", re.IGNORECASE),
    "sweep-v2": re.compile(r"sweep-next-edit(-v2|\S*\.v2\b)", re.IGNORECASE),
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
