"""Text to token ids and back, exactly, for any checkpoint's tokenizer; no text forges a control token.

The tokenizer of Calomel's own checkpoints is a byte-level BPE, stable to the left of the cursor. Pre-tokens are matched
from left to right without look-around, so appending characters to a text can only change the tokens from the start of
its last pre-token on. The prefix cache relies on that; so does training, which cuts holes at any character and encodes
prefix, middle and suffix separately. The special tokens of its prompts are ordinary vocabulary entries that no merge
can produce, never "added tokens": the text `<|end|>` in a user's file is encoded as its characters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from calomel.storage import MOST_TABLE_BYTES, read_whole

if TYPE_CHECKING:
    from tokenizers import Encoding
    from tokenizers import Tokenizer as FastTokenizer

END, MASK, PAD = "<|end|>", "<|mask|>", "<|pad|>"
FILE, SUFFIX, PREFIX, NEAR, MIDDLE = "<|file|>", "<|suffix|>", "<|prefix|>", "<|near|>", "<|middle|>"
_NAMED: Final = (END, MASK, PAD, FILE, SUFFIX, PREFIX, NEAR, MIDDLE)
# Room for future formats: ids that exist from the start need no surgery on the weights.
_RESERVED: Final = tuple(f"<|reserved_{number}|>" for number in range(32 - len(_NAMED)))
SPECIAL_TOKENS: Final = _NAMED + _RESERVED
# They mark a text to be rewritten, and the cursor in it.
REGION, CURSOR = _RESERVED[:2]
# How many chunks of long texts are cached, of about three hundred characters each: the windows of about a hundred
# files. With 64 clients of one server, each with two windows, encoding them again held up the engine for a fifth of its
# time.
_REMEMBERED: Final = 8192
# Line ends with the indentation after them are one pre-token, so that the common ones become one token. Words take one
# leading space. Numbers are split into threes. Every character is matched by one of the alternatives.
PRE_TOKEN: Final = r"(?:\r?\n)+[ \t]*| ?[\p{L}_]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}_]+|[ \t]+|\s"  # noqa: S105

# Texts shorter than this, in characters, are encoded at once.
_LONG: Final = 512
# Characters of a chunk of a longer text: it ends at the first blank line between these two, if there is one.
_LEAST, _MOST = 128, 2048


class TokenizerError(ValueError):
    """The tokenizer file is missing, damaged or lacks a special token; the message names it."""


class TextTokenizer:
    """Text to ids and back. `encode` never produces a control id, whatever the text says.

    Args:
        fast: the library's tokenizer.
        end: id of the token that ends an answer.
        mask: id of the token that stands for "not known yet"; -1 if there is none.
        control: the control tokens, name to id.
        piece_bytes: the bytes that a token's piece of the vocabulary stands for.

    Attributes:
        vocab_size: number of tokens that text is made of; `size` counts added ones too.
        control: the control tokens, name to id.
        indents_apart: the indentation of a line is one pre-token with the line end before it, whatever follows. Others
            give its last blank to what follows.
    """

    indents_apart = False

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
        # One object per id: long contexts are compared by object identity first, and stored by the thousand.
        self._ids = list(range(self.size))

    def encode(self, text: str) -> list[int]:
        """The ids of `text`. Lone surrogates, which no file on disk contains, become U+FFFD."""
        return list(chain.from_iterable(ids for _, _, ids in self._chunks(text)))

    def encode_last(self, text: str, count: int) -> tuple[list[int], int | None]:
        """The ids of `text`, and where, in characters, the pre-token of the `count`-th token from its end starts.

        None if the text has no more than `count` tokens.
        """
        chunks = list(self._chunks(text))
        if len(chunks) == 1 and len(chunks[0][2]) > count:
            return list(chunks[0][2]), self.encode_with_words(text)[1][-count]
        ids = list(chain.from_iterable(part for _, _, part in chunks))
        surplus = len(ids) - count
        if surplus <= 0:
            return ids, None
        ends = accumulate(len(part) for _, _, part in chunks)
        (start, stop, part), end = next(pair for pair in zip(chunks, ends, strict=True) if pair[1] > surplus)
        return ids, start + self.encode_with_words(text[start:stop])[1][surplus - end + len(part)]

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
            # Such vocabularies take the space before a word with it.
            return max(0, text.rfind(" "))
        pieces = self._fast.pre_tokenizer.pre_tokenize_str(encodable(text))
        return int(pieces[-1][1][0]) if pieces else 0

    def _chunks(self, text: str) -> Iterator[tuple[int, int, Sequence[int]]]:
        """Start, end and ids of the parts of a text, which together are its ids; the last part is not cached."""
        cuts = [0, *self._cuts(text)]
        for start, stop in pairwise(cuts):
            yield start, stop, self._chunk(text[start:stop])
        yield cuts[-1], len(text), self._encode(text[cuts[-1] :] if cuts[-1] else text)

    def _cuts(self, text: str) -> list[int]:
        """Where a long text may be cut so that its parts, encoded separately, give the ids of the whole; never at 0.

        The places depend on the text around them, so that a change at one leaves the parts before and far after it
        alone.
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
        return list(chain.from_iterable(part.ids for _, part in self._encodings(encodable(text))))

    def _encodings(self, text: str) -> list[tuple[int, Encoding]]:
        """What the library makes of a text, in pieces that begin at these characters."""
        return [(0, self._fast.encode(text, add_special_tokens=False))]

    def encode_with_words(self, text: str) -> tuple[list[int], list[int], list[int]]:
        """Ids, and for each id the start and end, in characters, of the pre-token that it belongs to."""
        ids: list[int] = []
        starts: list[int] = []
        ends: list[int] = []
        # Without pre-tokens all of the text is one word: then each token is one.
        alone = self._fast.pre_tokenizer is None
        for at, part in self._encodings(encodable(text)):
            spans: dict[int | None, tuple[int, int]] = {}
            for word, (start, end) in zip(part.word_ids, part.offsets, strict=True):
                known = spans.get(word, (start, end))
                spans[word] = (min(known[0], start), max(known[1], end))
            told = part.offsets if alone else [spans[word] for word in part.word_ids]
            ids += part.ids
            starts += [at + start for start, _ in told]
            ends += [at + end for _, end in told]
        return ids, starts, ends


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


class Tokenizer(TextTokenizer):
    """The tokenizer of Calomel's own checkpoints, with the tokens of their prompts."""

    indents_apart = True

    def __init__(self, fast: FastTokenizer) -> None:
        named = {name: token for name in SPECIAL_TOKENS if (token := fast.token_to_id(name)) is not None}
        if len(named) < len(SPECIAL_TOKENS):
            missing = next(name for name in SPECIAL_TOKENS if name not in named)
            raise TokenizerError(f"the tokenizer has no token {missing}")
        # A checkpoint may bring control tokens of its own, such as those of its chat template.
        fast.encode_special_tokens = True
        added = fast.get_added_tokens_decoder()
        control = named | {token.content: number for number, token in added.items() if token.special}
        super().__init__(fast, end=named[END], mask=named[MASK], control=control, piece_bytes=byte_level)
        self.size = fast.get_vocab_size(with_added_tokens=True)
        self.pad = named[PAD]
        self.file = named[FILE]
        self.suffix = named[SUFFIX]
        self.prefix = named[PREFIX]
        self.near = named[NEAR]
        self.middle = named[MIDDLE]
        self.region = named[REGION]
        self.cursor = named[CURSOR]

    @classmethod
    def from_file(cls, path: Path) -> Tokenizer:
        """Read a `tokenizer.json`; raises TokenizerError if that is impossible."""
        from tokenizers import Tokenizer as FastTokenizer  # of the extra `engine`

        try:
            text = read_whole(path, MOST_TABLE_BYTES).decode("utf-8")
            _check_order(json.loads(text)["model"])
            return cls(FastTokenizer.from_str(text))
        except FileNotFoundError as error:
            raise TokenizerError(f"{path} does not exist; a checkpoint folder needs tokenizer.json") from error
        except TokenizerError as error:
            raise TokenizerError(f"{path}: {error}") from error
        except Exception as error:
            raise TokenizerError(f"{path} is not a tokenizer file: {error}") from error

    def _cuts(self, text: str) -> list[int]:
        return line_cuts(text) if len(text) >= _LONG else []


def _check_order(model: Mapping[str, Any]) -> None:
    """Raise TokenizerError if ids do not follow the training: bytes first, then the merges' results in order."""
    vocabulary: Mapping[str, int] = model["vocab"]
    if len(model["merges"]) > len(vocabulary):
        raise TokenizerError("it has more merges than tokens")
    pairs = (pair if isinstance(pair, list) else pair.split(" ") for pair in model["merges"])
    learned = [vocabulary[piece] for piece in (*sorted(byte_alphabet().values()), *map("".join, pairs))]
    if any(a >= b for a, b in pairwise(learned)):
        raise TokenizerError("its ids and merges are in different orders: it belongs to other weights")


def line_cuts(text: str) -> list[int]:
    """Ends of lines, ascending, at blank lines where there are any, and the last end of a line.

    A cut is before a line end (of several in a row, before the first), which is a boundary of pre-tokens: only other
    line ends and the indentation of the next line can be in one pre-token with a line end.
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
    """The next blank line after `position`, unless it is far; then another line end."""
    at = text.find(blank, position + _LEAST, position + _MOST)
    if at < 0:
        at = text.find("\n", position + _LEAST * 4)
    if at < 0:
        return None
    start = _run_start(text, at)
    # A longer run of line ends is not cut.
    return start if start > position else None


def _run_start(text: str, at: int) -> int:
    """Where the run of line ends begins that the one at `at` belongs to."""
    while at > 0 and text[at - 1] in "\r\n":
        at -= 1
    return at
