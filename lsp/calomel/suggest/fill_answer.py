"""From what the model puts at the cursor to what is worth offering there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from calomel.suggest.checks.blank import is_blank
from calomel.suggest.checks.line_rest import line_rest, within_line
from calomel.suggest.checks.masked import has_mask
from calomel.suggest.checks.overlap import without_overlap
from calomel.suggest.checks.repeated import repeats_above, repeats_below
from calomel.suggest.completer import Candidate
from calomel.suggest.line_ends import with_line_ends_of
from calomel.suggest.silence import SilenceReason

_LAST_LINE_END: Final = re.compile(r"(?:\r\n|\r|\n)[^\r\n]*\Z")


@dataclass(frozen=True, slots=True)
class Filled:
    """What to insert.

    Attributes:
        text: with the document's line ends.
        cut: characters of the model's answer that were left out.
        truncated: the model had more to say than its limit allowed.
    """

    text: str
    cut: int = 0
    truncated: bool = False


def read_fill(candidate: Candidate, prefix: str, suffix: str) -> Filled | SilenceReason:  # noqa: PLR0911 (one for each reason)
    """The answer between `prefix` and `suffix`, the whole text before and behind the cursor; or why there is none."""
    text = candidate.text
    if not text:
        return SilenceReason.EMPTY
    if is_blank(text):
        return SilenceReason.WHITESPACE_ONLY
    if has_mask(text):
        return SilenceReason.SECRET
    whole = text = with_line_ends_of(text, prefix + suffix[:4096] if len(prefix) < 4096 else prefix)  # noqa: PLR2004
    truncated = candidate.finish_reason != "stop"
    last = _LAST_LINE_END.search(text)
    if truncated and last and text[: last.start()].strip():
        text = text[: last.start()]  # half a line is worth less than none
    rest = line_rest(suffix)
    text = within_line(text, rest)
    if not rest.strip():
        text = text.rstrip()
    if is_blank(text):
        return SilenceReason.WHITESPACE_ONLY
    text = without_overlap(text, suffix)
    if is_blank(text):
        return SilenceReason.DUPLICATE_OF_SUFFIX
    line_start = max(prefix.rfind("\n"), prefix.rfind("\r")) + 1
    line_prefix = prefix[line_start:]
    if repeats_below(line_prefix, text, suffix[len(rest) : len(rest) + 4096]):
        return SilenceReason.REPEATED
    if not rest.strip() and repeats_above(line_prefix, text, prefix[max(0, line_start - 1024) : line_start]):
        return SilenceReason.REPEATED
    return Filled(text, len(whole) - len(text), truncated)
