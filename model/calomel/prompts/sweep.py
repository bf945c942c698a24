"""Sweep's prompts for next edits, as their models were trained on them, and the answers.

    <|file_sep|>path  text of another file …
    <|file_sep|>path.diff  original: … updated: …  an edit, the last one last …
    <|file_sep|>original/path  the lines around the cursor, as they were before the last edits
    <|file_sep|>current/path  those lines as they are
    <|file_sep|>updated/path  →  those lines as they will be

This is for the models of 0.5B and 1.5B (`run_model.py` of the card of sweepai/sweep-next-edit-1.5B), which get the edit
before the last one as the last diff. Those of v2 (`inference.py` of sweepai/sweep-next-edit-v2-7B, and Sweep's own
sweep-autocomplete 0.1.1 on PyPI) get the file first, line numbers (`path:first:last`) and the cursor, and the lines
above the cursor's: an answer continues after them. A place without the cursor gets it behind its first line.

What sweep-autocomplete does otherwise: it numbers the lines of a region from the cursor's own within it, where ours are
the file's, as in its diffs; its region has 10 lines on each side without blank ones at the edges; its diffs have one
line of context.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calomel.prompts.edit_prompt import ended_like, mended, unforged
from calomel.prompts.parts import EditRegion, Hunk, PromptParts

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
