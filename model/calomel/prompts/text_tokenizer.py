"""Text to token ids and back, exactly, whatever checkpoint the tokenizer is of; no text forges a control token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from tokenizers import Tokenizer as FastTokenizer

# So many long texts are remembered. With 64 clients of one server, each with two windows, encoding them anew held up
# the engine for a fifth of its time.
_REMEMBERED: Final = 128


class TokenizerError(ValueError):
    """The tokenizer file is missing, damaged or lacks a special token; the message names it."""


class TextTokenizer:
    """Text to ids and back. `encode` never produces a control id, whatever the text says.

    Args:
        fast: the library's tokenizer.
        end: id of the token that ends an answer.
        mask: id of the token that stands for "not known yet"; -1 where there is none.
        control: the control tokens, name to id.
        piece_bytes: the bytes that a token's piece of the vocabulary stands for.

    Attributes:
        vocab_size: number of tokens that text is made of; `size` counts added ones too.
        control: the control tokens, name to id.
    """

    def __init__(
        self,
        fast: FastTokenizer,
        *,
        end: int,
        mask: int,
        control: Mapping[str, int],
        piece_bytes: Callable[[str], bytes],
    ) -> None:
        self._fast = fast
        self.end = end
        self.mask = mask
        self.control: Mapping[str, int] = MappingProxyType(dict(control))
        self.vocab_size: int = fast.get_vocab_size(with_added_tokens=False)
        self.size: int = max(fast.get_vocab_size(with_added_tokens=True), *(number + 1 for number in control.values()))
        self._special_ids = frozenset(self.control.values())
        self._piece_bytes = piece_bytes
        # Typing changes the last line; what stands before it is the same text again and again.
        self._encode_before = lru_cache(maxsize=_REMEMBERED)(self._encode)
        self._words_before = lru_cache(maxsize=_REMEMBERED)(self._encode_with_words)

    def encode(self, text: str) -> list[int]:
        """The ids of `text`. Lone surrogates, which no file on disk holds, become U+FFFD."""
        cut = self._cut(text)
        return [*self._encode_before(text[:cut]), *self._encode(text[cut:])] if cut else self._encode(text)

    def encode_with_words(self, text: str) -> tuple[list[int], list[int], list[int]]:
        """Ids, and for each id the start and end, in characters, of the pre-token that it belongs to."""
        cut = self._cut(text)
        if not cut:
            return self._encode_with_words(text)
        ids, starts, ends = self._words_before(text[:cut])
        last_ids, last_starts, last_ends = self._encode_with_words(text[cut:])
        return (
            [*ids, *last_ids],
            [*starts, *(cut + start for start in last_starts)],
            [*ends, *(cut + end for end in last_ends)],
        )

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """The bytes that `ids` stand for; control ids stand for none."""
        out = bytearray()
        for token in ids:
            if token in self._special_ids:
                continue
            piece = self._piece(token)
            if piece is None:
                raise TokenizerError(f"token id {token} is outside the vocabulary of {self.vocab_size}")
            out.extend(piece)
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
        if self._fast.pre_tokenizer is None:
            return 0
        pieces = self._fast.pre_tokenizer.pre_tokenize_str(encodable(text))
        return int(pieces[-1][1][0]) if pieces else 0

    def _cut(self, text: str) -> int:
        """Where a long text may be cut so that both parts, encoded apart, give the ids of the whole; 0 for nowhere."""
        del text
        return 0

    def _piece(self, token: int) -> bytes | None:
        piece = self._fast.id_to_token(token)
        return None if piece is None else self._piece_bytes(piece)

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._fast.encode(encodable(text), add_special_tokens=False).ids
        return ids

    def _encode_with_words(self, text: str) -> tuple[list[int], list[int], list[int]]:
        encoding = self._fast.encode(encodable(text), add_special_tokens=False)
        ids: list[int] = encoding.ids
        words = [word if word is not None else -1 for word in encoding.word_ids]
        spans: dict[int, tuple[int, int]] = {}
        for word, (start, end) in zip(words, encoding.offsets, strict=True):
            known = spans.get(word, (start, end))
            spans[word] = (min(known[0], start), max(known[1], end))
        return ids, [spans[word][0] for word in words], [spans[word][1] for word in words]


def byte_alphabet() -> dict[int, str]:
    """The printable stand-in of each byte value in GPT-2's byte-level BPE (Radford et al. 2019)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    alphabet = {value: chr(value) for value in printable}
    rest = (value for value in range(256) if value not in alphabet)
    alphabet.update({value: chr(256 + count) for count, value in enumerate(rest)})
    return alphabet


_BYTES: Final = {character: value for value, character in byte_alphabet().items()}


def byte_level(piece: str) -> bytes:
    """The bytes of a piece of a byte-level vocabulary."""
    return bytes(_BYTES[character] for character in piece)


def encodable(text: str) -> str:
    """The text with U+FFFD for every lone surrogate."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
