"""The byte-level BPE tokenizer of a checkpoint: exact on every text, and stable to the left of the cursor.

Pre-tokens are matched from left to right without look-around, so appending characters to a text can only change the
tokens from the start of its last pre-token on. The prefix cache relies on that; so does training, which cuts holes at
any character and encodes prefix, middle and suffix apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tokenizers import Tokenizer as FastTokenizer

from calomel.prompts import special

# Line ends with the indentation behind them are one pre-token, so that the common ones become one token. Words take one
# leading space. Numbers go in threes. Every character is matched by one of the alternatives.
PRE_TOKEN: Final = r"(?:\r?\n)+[ \t]*| ?[\p{L}_]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}_]+|[ \t]+|\s"  # noqa: S105


# Texts shorter than this, in characters, are encoded at once; so many longer ones are remembered. With 64 clients of
# one server, each with two windows, encoding them anew held up the engine for a fifth of its time.
_LONG: Final = 512
_REMEMBERED: Final = 128


class TokenizerError(ValueError):
    """The tokenizer file is missing, damaged or lacks a special token; the message names it."""


class Tokenizer:
    """Text to ids and back. `encode` never produces a special id, whatever the text says.

    Attributes:
        vocab_size: number of tokens that text is made of; `size` counts added ones too.
        control: the special tokens, name to id.
    """

    def __init__(self, fast: FastTokenizer) -> None:
        self._fast = fast
        self.vocab_size: int = fast.get_vocab_size(with_added_tokens=False)
        self.end = self._special(special.END)
        self.mask = self._special(special.MASK)
        self.pad = self._special(special.PAD)
        self.file = self._special(special.FILE)
        self.suffix = self._special(special.SUFFIX)
        self.prefix = self._special(special.PREFIX)
        self.near = self._special(special.NEAR)
        self.middle = self._special(special.MIDDLE)
        self.region = self._special(special.REGION)
        self.cursor = self._special(special.CURSOR)
        # A checkpoint may bring control tokens of its own, such as those of its chat template.
        fast.encode_special_tokens = True
        self.size: int = fast.get_vocab_size(with_added_tokens=True)
        added = fast.get_added_tokens_decoder()
        self.control: Mapping[str, int] = MappingProxyType(
            {name: self._special(name) for name in special.ALL}
            | {token.content: number for number, token in added.items() if token.special}
        )
        self._special_ids = frozenset(self.control.values())
        self._bytes = {character: value for value, character in byte_alphabet().items()}
        # Typing changes the last line; what stands before it is the same text again and again.
        self._encode_before = lru_cache(maxsize=_REMEMBERED)(self._encode)
        self._words_before = lru_cache(maxsize=_REMEMBERED)(self._encode_with_words)

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

    def encode(self, text: str) -> list[int]:
        """The ids of `text`. Lone surrogates, which no file on disk holds, become U+FFFD."""
        cut = _last_line_end(text)
        return [*self._encode_before(text[:cut]), *self._encode(text[cut:])] if cut else self._encode(text)

    def encode_with_words(self, text: str) -> tuple[list[int], list[int], list[int]]:
        """Ids, and for each id the start and end, in characters, of the pre-token that it belongs to."""
        cut = _last_line_end(text)
        if not cut:
            return self._encode_with_words(text)
        ids, starts, ends = self._words_before(text[:cut])
        last_ids, last_starts, last_ends = self._encode_with_words(text[cut:])
        return (
            [*ids, *last_ids],
            [*starts, *(cut + start for start in last_starts)],
            [*ends, *(cut + end for end in last_ends)],
        )

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._fast.encode(_encodable(text), add_special_tokens=False).ids
        return ids

    def _encode_with_words(self, text: str) -> tuple[list[int], list[int], list[int]]:
        encoding = self._fast.encode(_encodable(text), add_special_tokens=False)
        ids: list[int] = encoding.ids
        words = [word if word is not None else -1 for word in encoding.word_ids]
        spans: dict[int, tuple[int, int]] = {}
        for word, (start, end) in zip(words, encoding.offsets, strict=True):
            known = spans.get(word, (start, end))
            spans[word] = (min(known[0], start), max(known[1], end))
        return ids, [spans[word][0] for word in words], [spans[word][1] for word in words]

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """The bytes that `ids` stand for; special ids stand for none."""
        out = bytearray()
        for token in ids:
            if token in self._special_ids:
                continue
            piece = self._fast.id_to_token(token)
            if piece is None:
                raise TokenizerError(f"token id {token} is outside the vocabulary of {self.vocab_size}")
            out.extend(self._bytes[character] for character in piece)
        return bytes(out)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`. A character that is incomplete at the end is dropped, one inside becomes U+FFFD."""
        raw = self.decode_bytes(ids)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data":
                return raw[: error.start].decode("utf-8", errors="replace")
            return raw.decode("utf-8", errors="replace")

    def boundary(self, text: str) -> int:
        """Where, in characters, the last pre-token of `text` starts: adding text never changes the tokens before it."""
        pieces = self._fast.pre_tokenizer.pre_tokenize_str(_encodable(text))
        return int(pieces[-1][1][0]) if pieces else 0

    def _special(self, name: str) -> int:
        token = self._fast.token_to_id(name)
        if token is None:
            raise TokenizerError(f"the tokenizer has no token {name}")
        return int(token)


def byte_alphabet() -> dict[int, str]:
    """The printable stand-in of each byte value in GPT-2's byte-level BPE (Radford et al. 2019)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    alphabet = {value: chr(value) for value in printable}
    rest = (value for value in range(256) if value not in alphabet)
    alphabet.update({value: chr(256 + count) for count, value in enumerate(rest)})
    return alphabet


def _last_line_end(text: str) -> int:
    """Where the last line end of a long text starts, which is a boundary of pre-tokens; 0 for a short text."""
    if len(text) < _LONG:
        return 0
    cut = text.rfind("\n")
    while cut > 0 and text[cut - 1] in "\r\n":
        cut -= 1
    # A lone carriage return before the run may be a pre-token of its own or part of the run: do not cut there.
    return max(cut, 0) if cut > 0 and "\r" not in text[cut : cut + 2] else 0


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
