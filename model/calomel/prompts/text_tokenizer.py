"""Text to token ids and back, exactly, whatever checkpoint the tokenizer is of; no text forges a control token."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from types import MappingProxyType
from typing import Final

from tokenizers import Tokenizer as FastTokenizer

# So many chunks of long texts are remembered, of some three hundred characters each: the windows of some hundred files.
# With 64 clients of one server, each with two windows, encoding them anew held up the engine for a fifth of its time.
_REMEMBERED: Final = 8192


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
        # Typing changes one line; the chunks around it are the same texts again and again.
        self._chunk = lru_cache(maxsize=_REMEMBERED)(self._encode_chunk)
        # One object for each id: long contexts are compared by their objects first, and remembered by the thousand.
        self._ids = list(range(self.size))

    def encode(self, text: str) -> list[int]:
        """The ids of `text`. Lone surrogates, which no file on disk holds, become U+FFFD."""
        return list(chain.from_iterable(ids for _, _, ids in self._chunks(text)))

    def encode_with_words(self, text: str) -> tuple[list[int], list[int], list[int]]:
        """Ids, and for each id the start and end, in characters, of the pre-token that it belongs to."""
        return self._encode_with_words(text)

    def encode_last(self, text: str, count: int) -> tuple[list[int], int | None]:
        """The ids of `text`, and where, in characters, the pre-token of the `count`-th token from its end starts.

        None where the text has no more than `count` tokens.
        """
        chunks = list(self._chunks(text))
        if len(chunks) == 1 and len(chunks[0][2]) > count:
            return list(chunks[0][2]), self._encode_with_words(text)[1][-count]
        ids = list(chain.from_iterable(part for _, _, part in chunks))
        surplus = len(ids) - count
        if surplus <= 0:
            return ids, None
        ends = accumulate(len(part) for _, _, part in chunks)
        (start, stop, part), end = next(pair for pair in zip(chunks, ends, strict=True) if pair[1] > surplus)
        return ids, start + self._encode_with_words(text[start:stop])[1][surplus - end + len(part)]

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

    def _chunks(self, text: str) -> Iterator[tuple[int, int, Sequence[int]]]:
        """Start, end and ids of the parts of a text, which give those of the whole; the last one is not remembered."""
        cuts = [0, *self._cuts(text)]
        for start, stop in pairwise(cuts):
            yield start, stop, self._chunk(text[start:stop])
        yield cuts[-1], len(text), self._encode(text[cuts[-1] :] if cuts[-1] else text)

    def _cuts(self, text: str) -> list[int]:
        """Where a long text may be cut so that its parts, encoded apart, give the ids of the whole; nowhere at 0.

        Which places depends on what stands there, so that a change of one leaves the parts before and far behind it.
        """
        del text
        return []

    def _encode_chunk(self, text: str) -> tuple[int, ...]:
        known = self._ids
        return tuple(known[number] for number in self._encode(text))

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
