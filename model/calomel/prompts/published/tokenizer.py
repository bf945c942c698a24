"""The tokenizer of a published checkpoint: its own ids for text, and control tokens that no text forges.

Published tokenizers read the name of an added token in a text as that token, and many a control token (Qwen's
fill-in-the-middle ones, its tool calls) is not marked as special. So control tokens are taken out before text is
encoded; a name in a user's file is the characters that it consists of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from tokenizers import Encoding
from tokenizers import Tokenizer as FastTokenizer

from calomel.prompts.published.files import Added, read_files
from calomel.prompts.text_tokenizer import TextTokenizer, TokenizerError, byte_level, encodable

_NAMED: Final = re.compile(r"</?[^\s<>]+>|\[[A-Z_]+\]")
# Added to vocabularies so that web pages take fewer tokens: text as any other.
_HTML: Final = re.compile(
    r"a|b|blockquote|br|caption|code|div|em|h[1-6]|hr|i|img|li|ol|p|pre|s|span|strong|su[bp]|t(able|body|d|foot|h|head|r)|ul?"
)
_BYTE_PIECE: Final = re.compile(r"<0x([0-9A-F]{2})>")


class PublishedTokenizer(TextTokenizer):
    """A published checkpoint's tokenizer.

    Args:
        folder: the checkpoint's.
        end: id of the token that ends an answer, as the engine knows it.
        mask: id of the mask token; -1 where there is none.
        names: of further control tokens, which may be in the vocabulary of text.

    Raises:
        TokenizerError: files are missing or damaged.
    """

    def __init__(self, folder: Path, *, end: int, mask: int = -1, names: Iterable[str] = ()) -> None:
        files = read_files(folder)
        wanted = set(names)
        described = files.description
        vocabulary = _vocabulary(described)
        control = {token.name: token.id for token in files.added if _controls(token, wanted)}
        control |= {name: vocabulary[name] for name in wanted if name in vocabulary}
        by_id = {number: name for name, number in vocabulary.items()} if vocabulary else {}
        for number in (end, mask):
            if number >= 0 and number not in control.values():
                control[by_id.get(number, f"<token {number}>")] = number
        # All of them stay, for the library numbers them anew; it can be told to read special ones as text.
        added = [{**token, "special": token["content"] in control} for token in described.get("added_tokens") or ()]
        # What it puts around every text (a token at the beginning) is the prompt's to write.
        bare = {**described, "added_tokens": added, "post_processor": None, "truncation": None, "padding": None}
        try:
            fast = FastTokenizer.from_str(json.dumps(bare))
        except Exception as error:
            raise TokenizerError(f"the tokenizer in {folder} can not be read: {error}") from error
        fast.encode_special_tokens = True
        self._literal = {int(token["id"]): str(token["content"]).encode() for token in added if not token["special"]}
        pieces = byte_level if "ByteLevel" in _kinds(described.get("decoder")) else _spelled
        super().__init__(fast, end=end, mask=mask, control=control, piece_bytes=pieces)

    def ids_of(self, names: Sequence[str]) -> tuple[int, ...]:
        """The ids of control tokens that there must be. Raises TokenizerError."""
        missing = [name for name in names if name not in self.control]
        if missing:
            raise TokenizerError(f"the tokenizer has no token {missing[0]}")
        return tuple(self.control[name] for name in names)

    def _piece(self, token: int) -> bytes | None:
        literal = self._literal.get(token)
        if literal is not None:
            return literal
        # A vocabulary is often padded to a round number of rows: such an id stands for nothing.
        return super()._piece(token) or b""

    def _encode(self, text: str) -> list[int]:
        return [number for _, part in self._encodings(encodable(text)) for number in part.ids]

    def _encode_with_words(self, text: str) -> tuple[list[int], list[int], list[int]]:
        ids: list[int] = []
        starts: list[int] = []
        ends: list[int] = []
        for at, part in self._encodings(encodable(text)):
            spans: dict[int | None, tuple[int, int]] = {}
            for word, (start, end) in zip(part.word_ids, part.offsets, strict=True):
                known = spans.get(word, (start, end))
                spans[word] = (min(known[0], start), max(known[1], end))
            # Without pre-tokens all of the text is one word: then each token is one.
            alone = self._fast.pre_tokenizer is None
            told = part.offsets if alone else [spans[word] for word in part.word_ids]
            ids += part.ids
            starts += [at + start for start, _ in told]
            ends += [at + end for _, end in told]
        return ids, starts, ends

    def _encodings(self, text: str) -> list[tuple[int, Encoding]]:
        """The text in one piece; where a vocabulary makes a control token of text, in pieces that do not."""
        found = self._fast.encode(text, add_special_tokens=False)
        if self._special_ids.isdisjoint(found.ids):
            return [(0, found)]
        forged = next(at for at, number in enumerate(found.ids) if number in self._special_ids)
        start, end = found.offsets[forged]
        middle = (start + end + 1) // 2
        if not 0 < middle < len(text):
            raise TokenizerError("the tokenizer makes a control token of one character")
        front = self._encodings(text[:middle])
        return [*front, *((middle + at, part) for at, part in self._encodings(text[middle:]))]


def _controls(token: Added, wanted: set[str]) -> bool:
    if token.special or token.name in wanted:
        return True
    return bool(_NAMED.fullmatch(token.name)) and not _HTML.fullmatch(token.name.strip("</>"))


def _vocabulary(described: dict[str, Any]) -> dict[str, int]:
    model = described.get("model")
    found = model.get("vocab") if isinstance(model, dict) else None
    return found if isinstance(found, dict) else {}


def _kinds(decoder: Any) -> set[str]:
    if not isinstance(decoder, dict):
        return set()
    inner = decoder.get("decoders") or ()
    return {str(decoder.get("type")), *(kind for each in inner for kind in _kinds(each))}


def _spelled(piece: str) -> bytes:
    """A piece of a vocabulary of characters, where a lower block is a blank and other bytes are spelled out."""
    byte = _BYTE_PIECE.fullmatch(piece)
    return bytes([int(byte[1], 16)]) if byte else piece.replace("\u2581", " ").encode()
