"""Every sentence that a person can see, so that a change of one is read by somebody."""

from __future__ import annotations

import re
from typing import Final

from tests.golden.transcript import Transcript
from tests.house.words import messages

# Three words in a row. What holds code, such as a pattern, is nothing that anybody reads.
_SENTENCE: Final = re.compile(r"(?:^|[\s(`*])[A-Za-z][a-z']*,? [a-z']+,? [a-z'`-]")
_CODE: Final = re.compile(
    r"\\[a-zA-Z]|\(\?|=>|</|^\s*(?:from|import|local|return|def) |function\(|: function|\); |vim\."
)


def test_messages_are_what_they_were() -> None:
    parts: dict[str, set[str]] = {}
    for path, text in messages():
        if _SENTENCE.search(text) and not _CODE.search(text):
            folder = path.split("/")
            part = folder[1] if folder[0] == "editors" else folder[0]
            parts.setdefault(part, set()).add(" ".join(text.split()))
    transcript = Transcript("messages", {})
    for part, sentences in sorted(parts.items()):
        transcript.heading(part)
        for sentence in sorted(sentences):
            transcript.says("", sentence)
    transcript.check()
