"""Reads the golden cases of `tests/golden/filters.txt`, whose head explains their marks."""

from __future__ import annotations

import re
from dataclasses import replace

from calomel.selectivity.proposal import Edit, Proposal, Recent
from calomel.workspace.languages import builtin_names
from calomel.workspace.secrets import mask
from calomel.workspace.syntax import SyntaxTrees

_TIMES = re.compile(r"⟪(.*?)·(\d+)⟫")
_LETTER = re.compile(r"\\u([0-9a-f]{4})|\\\\")
_WITHDRAWN = re.compile(r"⟦(.*?)→(.*?)⟧")


def proposal(case: str, language_id: str = "python", line_end: str = "\n") -> Proposal:
    """The suggestion that a case shows."""
    case = _TIMES.sub(lambda found: found[1] * int(found[2]), case)
    case = _LETTER.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", case).replace("↵", line_end)
    withdrawn = frozenset((found[1], found[2]) for found in _WITHDRAWN.finditer(case))
    case = _WITHDRAWN.sub("", case)
    made = _read(case.replace("✂", ""), language_id)
    made = replace(made, withdrawn=withdrawn, cut_off="✂" in case)

    def errors(behind: str) -> tuple[int, int] | None:
        start, end, new = made.edits[-1]
        more = replace(made, edits=(*made.edits[:-1], Edit(start, end, new + behind)))
        before, after = (SyntaxTrees().error_count(text, language_id, seconds=60.0) for text in (made.text, more.after))
        return None if before is None or after is None else (before, after)

    return replace(made, errors=errors)


def _read(case: str, language_id: str) -> Proposal:
    text, masked = "", ""
    edits: list[Edit] = []
    done: dict[str, list[Recent]] = {"⟩": [], "»": []}
    written: list[tuple[int, str]] = []
    cursor: int | None = None
    region: list[int] = []
    hidden = False
    at = 0
    while at < len(case):
        mark = case[at]
        at += 1
        if mark == "├":
            old, arrow, new = case[at : case.index("┤", at)].partition("→")
            at = case.index("┤", at) + 1
            if not arrow:
                old, new = "", old
            pieces = old.split("▒")
            edits.append(Edit(len(text), len(text) + len("".join(pieces)), new))
            text += "".join(pieces)
            masked += "".join("*" * len(piece) if number % 2 else piece for number, piece in enumerate(pieces))
        elif mark in "⟨«":
            written.append((len(text), case[at : case.index("→", at)]))
            at = case.index("→", at) + 1
        elif mark in done:
            start, gone = written.pop()
            done[mark].append(Recent(start, len(text), gone, text[start:]))
        elif mark == "‸":
            cursor = len(text)
        elif mark in "⌈⌉":
            region.append(len(text))
        elif mark == "▒":
            hidden = not hidden
        else:
            text, masked = text + mark, masked + ("*" if hidden else mark)
    return Proposal(
        kind="fill" if cursor is None and not region else "edit",
        text=text,
        edits=tuple(edits),
        cursor=edits[0].start if cursor is None and edits else cursor or 0,
        language_id=language_id,
        region=(region[0], region[1]) if region else None,
        recent=tuple(done["⟩"]),
        edited=tuple(done["»"]),
        builtins=builtin_names(language_id, None),
        masked=masked,
        mask=mask,
    )
