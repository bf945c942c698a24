"""A prompt of token ids as an upstream takes it: as ids, or as text where it takes nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence

from calomel.engine.errors import InvalidRequestError
from calomel.prompts.tokenizer import TextTokenizer


class Spelling:
    """Writes prompts as text.

    The upstream reads the name of a control token as that token, whoever wrote it: a prompt in which a user's text has
    such a name is refused.
    """

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        self._names = {number: name for name, number in tokenizer.control.items()}
        longest_first = sorted(self._names.values(), key=len, reverse=True)
        self._any_name = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def text(self, ids: Sequence[int]) -> str:
        """The text of `ids`. Raises InvalidRequestError where it would be read as other control tokens."""
        raw, run = bytearray(), list[int]()
        for token in ids:
            name = self._names.get(token)
            if name is None:
                run.append(token)
                continue
            raw += self._tokenizer.decode_bytes(run) + name.encode()
            run = []
        text = bytes(raw + self._tokenizer.decode_bytes(run)).decode("utf-8", "replace")
        wanted = [self._names[token] for token in ids if token in self._names]
        if self._any_name.findall(text) != wanted:
            raise InvalidRequestError(
                "the text around the cursor spells a control token of the model, and the upstream takes prompts as "
                "text alone, where it would be read as one"
            )
        return text
