"""The byte-level BPE tokenizer of a checkpoint: exact on every text, and stable to the left of the cursor.

Pre-tokens are matched from left to right without look-around, so appending characters to a text can only change the
tokens from the start of its last pre-token on. The prefix cache relies on that; so does training, which cuts holes at
any character and encodes prefix, middle and suffix apart.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tokenizers import Tokenizer as FastTokenizer

from calomel.prompts import special
from calomel.prompts.text_tokenizer import TextTokenizer, TokenizerError, byte_alphabet, byte_level

__all__ = ["PRE_TOKEN", "Tokenizer", "TokenizerError", "byte_alphabet"]

# Line ends with the indentation behind them are one pre-token, so that the common ones become one token. Words take one
# leading space. Numbers go in threes. Every character is matched by one of the alternatives.
PRE_TOKEN: Final = r"(?:\r?\n)+[ \t]*| ?[\p{L}_]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}_]+|[ \t]+|\s"  # noqa: S105

# Texts shorter than this, in characters, are encoded at once.
_LONG: Final = 512
# Characters of a chunk of a longer one: it ends at the first blank line behind so many, if there is one before so many.
_LEAST, _MOST = 128, 2048


class Tokenizer(TextTokenizer):
    """The tokenizer of Calomel's own checkpoints, with the tokens of their prompts."""

    def __init__(self, fast: FastTokenizer) -> None:
        named = {name: _special(fast, name) for name in special.ALL}
        # A checkpoint may bring control tokens of its own, such as those of its chat template.
        fast.encode_special_tokens = True
        added = fast.get_added_tokens_decoder()
        control = named | {token.content: number for number, token in added.items() if token.special}
        super().__init__(
            fast, end=named[special.END], mask=named[special.MASK], control=control, piece_bytes=byte_level
        )
        self.size = fast.get_vocab_size(with_added_tokens=True)
        self.pad = named[special.PAD]
        self.file = named[special.FILE]
        self.suffix = named[special.SUFFIX]
        self.prefix = named[special.PREFIX]
        self.near = named[special.NEAR]
        self.middle = named[special.MIDDLE]
        self.region = named[special.REGION]
        self.cursor = named[special.CURSOR]

    @classmethod
    def from_file(cls, path: Path) -> Tokenizer:
        """Read a `tokenizer.json`; raises TokenizerError when that is impossible."""
        if not path.is_file():
            raise TokenizerError(f"{path} does not exist; a checkpoint folder needs tokenizer.json")
        try:
            return cls(FastTokenizer.from_file(str(path)))
        except TokenizerError:
            raise
        except Exception as error:
            raise TokenizerError(f"{path} is no tokenizer file: {error}") from error

    def _cuts(self, text: str) -> list[int]:
        return line_cuts(text) if len(text) >= _LONG else []


def _special(fast: FastTokenizer, name: str) -> int:
    token = fast.token_to_id(name)
    if token is None:
        raise TokenizerError(f"the tokenizer has no token {name}")
    return int(token)


def line_cuts(text: str) -> list[int]:
    """Ends of lines, ascending, at blank lines where there are any, and the last end of a line.

    A cut is before a line end (of several in a row, before the first), which is a boundary of pre-tokens: nothing but
    line ends and what indents the line behind them is ever one pre-token with a line end.
    """
    blank = "\n\r\n" if "\r" in text else "\n\n"
    cuts: list[int] = []
    position = 0
    while (found := _cut_behind(text, position, blank)) is not None:
        cuts.append(found)
        position = found
    last = _run_start(text, text.rfind("\n"))
    return [*cuts, last] if last > position else cuts


def _cut_behind(text: str, position: int, blank: str) -> int | None:
    """The next blank line behind `position`, unless it is far; then a line end that is not."""
    at = text.find(blank, position + _LEAST, position + _MOST)
    if at < 0:
        at = text.find("\n", position + _LEAST * 4)
    if at < 0:
        return None
    start = _run_start(text, at)
    # A run of line ends that goes on for so long is cut by nobody.
    return start if start > position else None


def _run_start(text: str, at: int) -> int:
    """Where the line ends begin of which the one at `at` is one."""
    while at > 0 and text[at - 1] in "\r\n":
        at -= 1
    return at
