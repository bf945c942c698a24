"""What Zed makes of an answer in zeta2.1."""

from __future__ import annotations

import re
from typing import Final

from tests.editors.zed.prompts import Asked

_TAG: Final = re.compile(r"<\|marker_(\d+)\|>")
_END: Final = "<[end▁of▁sentence]>"
_CURSOR: Final = "<|user_cursor|>"


class UnreadableAnswerError(Exception):
    """The editor logs an error, and shows nothing."""


def applied(asked: Asked, answer: str) -> str:
    """The file once the whole prediction was accepted.

    Raises:
        UnreadableAnswerError: the markers are not there, or not the prompt's.
    """
    if not answer:
        return asked.file
    tags = list(_TAG.finditer(answer.removesuffix(_END)))
    if len(tags) < 2:
        raise UnreadableAnswerError("fewer than two markers")
    first, last = int(tags[0][1]), int(tags[-1][1])
    if not 1 <= first <= last <= len(asked.markers):
        raise UnreadableAnswerError(f"markers {first} to {last} of {len(asked.markers)}")
    if first == last:
        return asked.file
    new = _TAG.sub("", answer[tags[0].end() : tags[-1].start()]).replace(_CURSOR, "", 1)
    start = asked.excerpt.region_start
    return asked.file[: start + asked.markers[first - 1]] + new + asked.file[start + asked.markers[last - 1] :]
