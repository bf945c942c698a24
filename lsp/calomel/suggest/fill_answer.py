"""From what the model puts at the cursor to what is worth offering there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from calomel.suggest.checks.blank import is_blank
from calomel.suggest.checks.line_rest import line_rest, within_line
from calomel.suggest.checks.overlap import without_echo, without_overlap
from calomel.suggest.completer import Candidate
from calomel.suggest.fitting import Refuses, fitted
from calomel.suggest.line_ends import with_line_ends_between
from calomel.suggest.silence import SilenceReason

_LAST_LINE_END: Final = re.compile(r"(?:\r\n|\r|\n)[^\r\n]*\Z")


@dataclass(frozen=True, slots=True)
class Filled:
    """What to insert.

    Attributes:
        text: with the line ends of its place.
        cut: characters of the model's answer that were left out.
        truncated: the model had more to say than its limit allowed.
        cut_off: what it said ends within a line for that, and had no whole line before.
    """

    text: str
    cut: int = 0
    truncated: bool = False
    cut_off: bool = False


def read_fill(
    candidate: Candidate, prefix: str, suffix: str, language_id: str, refuses: Refuses
) -> Filled | SilenceReason:
    """The answer between `prefix` and `suffix`, the whole text before and behind the cursor.

    What repeats the text behind the cursor, or the word before it, is taken off, and what it leaves open, unless
    nothing else would be left. Whether an answer is worth anything is not decided here.
    """
    if not candidate.text:
        return SilenceReason.EMPTY
    whole = text = with_line_ends_between(candidate.text, prefix, suffix)
    text = without_echo(prefix, text)
    if is_blank(text) and not is_blank(whole):
        return SilenceReason.REPEATS_ABOVE
    truncated = candidate.finish_reason != "stop"
    last = _LAST_LINE_END.search(text)
    cut_off = truncated
    if truncated and last and text[: last.start()].strip():
        text = text[: last.start()]  # half a line is worth less than none
        cut_off = False
    rest = line_rest(suffix)
    if "\n" in text or "\r" in text:
        within = within_line(text, rest)
        cut_off = cut_off and within == text
        text = within
    if not rest.strip():
        text = text.rstrip()
    left = without_overlap(text, suffix)
    if not is_blank(left):
        text = left
    if is_blank(text):
        text = whole
    if not cut_off:
        text = fitted(text, prefix, suffix, language_id, refuses).rstrip() or text
    return Filled(text, len(whole) - len(text), truncated, cut_off)
