"""The text around a hole, cut to the room that a prompt has for it."""

from __future__ import annotations

from calomel.prompts.fim import last_tokens
from calomel.prompts.text_tokenizer import TextTokenizer

# A token of code is rarely longer than this on average.
_CHARACTERS_PER_TOKEN = 12
# Of the room, for the suffix, where the prefix wants the rest.
_SUFFIX_SHARE = 4


def window(prefix: str, suffix: str, room: int, tokenizer: TextTokenizer) -> tuple[list[int], list[int]]:
    """Ids of the end of `prefix` and of the beginning of `suffix`, together at most `room`.

    The suffix has a quarter, more where the prefix needs less. The prefix begins at a line, in hops.
    """
    behind = tokenizer.encode(suffix[: max(0, room) * _CHARACTERS_PER_TOKEN])
    share = min(len(behind), max(0, room) // _SUFFIX_SHARE)
    before = last_tokens(prefix, room - share, tokenizer)
    return before, behind[: max(0, room - len(before))]
