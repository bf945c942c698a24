"""What clients send to have a snippet merged: the file and the snippet, in one message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# Clients mark a message as one of these, and not all take the mark off again.
_MARKS: Final = re.compile(r"<\|!@#IS_(?:APPLY|NEXT_EDIT)!@#\|>")
_OPEN: Final = "<|{}|>"
_CLOSE: Final = "<|/{}|>"
_ORIGINAL: Final = "original_code"
_UPDATE: Final = "update_snippet"
# Continue's words, in its prompt for applying and in the one for rewriting.
_SUGGESTED: Final = "The following code was suggested as an edit:\n"
_PLEASE: Final = "\nPlease apply it to the previous code."
_REWRITE: Final = "This is the code to rewrite:\n"
_REQUEST: Final = "\n\nThe user's request is: "


class ApplyPromptError(ValueError):
    """A message that is no such prompt. It says what is missing and quotes nothing."""


@dataclass(frozen=True, slots=True)
class ApplyPrompt:
    """A file, and what should become of it.

    Attributes:
        original: the file, as it is.
        update: the snippet.
    """

    original: str
    update: str


def parse_apply(message: str) -> ApplyPrompt:
    """Read a message: the published tags, in any order, or Continue's own sentences.

    Raises:
        ApplyPromptError: there is no original or no update.
    """
    text = _MARKS.sub("", message)
    if _OPEN.format(_ORIGINAL) in text:
        return _tagged(text)
    at = text.rfind(_SUGGESTED)
    if at < 0:
        raise ApplyPromptError("The message has no <|original_code|> section.")
    end = text.rfind(_PLEASE)
    update = _unfenced(text[at + len(_SUGGESTED) : end if end > at else len(text)])
    request = text.rfind(_REQUEST, 0, at)
    rewritten = text.rfind(_REWRITE, 0, max(request, 0))
    if rewritten >= 0:
        return ApplyPrompt(_unfenced(text[rewritten + len(_REWRITE) : request]), update)
    return ApplyPrompt(text[:at].removesuffix("\n\n"), update)


def _tagged(text: str) -> ApplyPrompt:
    opens, update = _OPEN.format(_ORIGINAL), _OPEN.format(_UPDATE)
    first, second = text.find(opens), text.find(update)
    if second < 0:
        raise ApplyPromptError("The message has no <|update_snippet|> section.")
    if first > second:
        return ApplyPrompt(_section(text, _ORIGINAL, first, len(text)), _section(text, _UPDATE, second, first))
    # The file itself may speak of these tags: its own section ends right before the update begins.
    closes = _CLOSE.format(_ORIGINAL)
    between = re.compile(rf"{re.escape(closes)}\s*{re.escape(update)}").search(text, first)
    if between is not None:
        second = between.end() - len(update)
    return ApplyPrompt(_section(text, _ORIGINAL, first, second), _section(text, _UPDATE, second, len(text)))


def _section(text: str, tag: str, start: int, end: int) -> str:
    """What is between a pair of tags, without the line ends that belong to the tags."""
    start += len(_OPEN.format(tag))
    closed = text.rfind(_CLOSE.format(tag), start, end)
    inside = text[start : closed if closed >= 0 else end]
    framed = "\r\n" if inside.startswith("\r\n") else "\n"
    inside = inside.removeprefix(framed)
    return inside.removesuffix(framed) if closed >= 0 else inside


def _unfenced(text: str) -> str:
    """What is between a fence's lines; the text itself without them."""
    if not text.startswith("```"):
        return text
    inside = text.partition("\n")[2]
    end = inside.rfind("\n```")
    if inside.startswith("```"):
        return ""
    return inside[:end] if end >= 0 else inside
