"""A checkpoint published by other makers: its tokenizer, read from its files, and its prompt renderers.

Published tokenizers read the name of an added token in a text as that token, and many control tokens (Qwen's
fill-in-the-middle ones, its tool calls) are not marked as special. So control tokens are taken out before text is
encoded; a name in a user's file is encoded as its characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tokenizers import Encoding, Regex, decoders, normalizers, pre_tokenizers
from tokenizers import Tokenizer as FastTokenizer
from tokenizers.models import BPE

from calomel.prompts.chat import Message
from calomel.prompts.chat_template import ChatPrompt, ChatTemplate, ChatTemplateError
from calomel.prompts.fim_tokens import FimTokensRenderer, LeftToRightRenderer, format_of, token_names
from calomel.prompts.next_edit import EDIT_FORMATS, NextEditRenderer
from calomel.prompts.own import FimTokens, diff_text
from calomel.prompts.parts import EditRegion, Excerpt, PromptParts
from calomel.prompts.renderer import SEAMS, AroundRenderer, EndingRenderer, PlainAnswer, PromptStyle, fit
from calomel.prompts.tokenizer import TextTokenizer, TokenizerError, byte_level
from calomel.storage import MOST_TABLE_BYTES, read_object, read_whole
from calomel.storage.failures import cause

_OPENING: Final = re.compile(r"\s*(?P<fence>`{3,})[^\n`]*\n")
_CLOSING: Final = re.compile(r"(?:^|(?<=\n))(?P<fence>`{3,})[ \t]*(?=\n|$)")
# The end of an unfinished text that may become the closing fence.
_MAY_CLOSE: Final = re.compile(r"\n?`*[ \t]*\Z")
_START, _END, _CURSOR = "<REGION>", "</REGION>", "<CURSOR>"

_REWRITE: Final = (
    f"You are editing the file below. Rewrite the lines between {_START} and {_END} as they should be after the "
    f"next edit. {_CURSOR} marks the cursor. Continue the recent changes. If nothing should change, repeat the "
    "lines unchanged. Do not include the markers and do not explain."
)


class ChatRenderer:
    """Asks for a region in words.

    Args:
        template: the checkpoint's.
        tokenizer: the checkpoint's.
        ends: ids that end an answer.

    Raises:
        TokenizerError: the template rejects a single user message.
    """

    def __init__(self, template: ChatTemplate, tokenizer: TextTokenizer, ends: Sequence[int]) -> None:
        self._prompt = ChatPrompt(template, tokenizer)
        self._tokenizer = tokenizer
        self._plain = PlainAnswer(tokenizer, ends)
        try:
            self._around = len(self._ids(PromptParts(), EditRegion("")))
        except ChatTemplateError as error:
            raise TokenizerError(f"the checkpoint does not work with its chat template: {error}") from error

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """The window gets three quarters of the room, and any rest; then recent changes, then other files."""
        region = parts.region or EditRegion("")
        fixed = self._around + SEAMS + self._count(parts.path or "") + self._count(region.text)
        shown, ids, cut = fit(
            parts, max_context, max_context - fixed, self._tokenizer, lambda shown: self._ids(shown, region)
        )
        return FimTokens(tuple(ids), reuse=len(ids), cut=cut, closing=_fence(shown, region))

    def read(self, ids: Sequence[int], *, whole: bool = True) -> str:
        """The text in the block."""
        return inside(self._plain.read(ids), whole=whole)

    def ended(self, ids: Sequence[int]) -> bool:
        """Whether the block is closed, or the answer over."""
        return self._plain.ended(ids) or closed(self._plain.read(ids))

    def shown(self, text: str) -> str:
        """A canvas' text without what belongs to the fences."""
        return inside(text)

    def _ids(self, parts: PromptParts, region: EditRegion) -> list[int]:
        fence = _fence(parts, region)
        message = Message("user", _words(parts, region, fence))
        # Qwen3 and its kin think aloud unless told not to; other templates ignore the variable.
        ids = self._prompt.render([message], enable_thinking=False)
        return [*ids, *self._tokenizer.encode(f"{fence}\n")]

    def _count(self, text: str) -> int:
        return len(self._tokenizer.encode(text)) if text else 0


def _words(parts: PromptParts, region: EditRegion, fence: str) -> str:
    """The instruction and the surroundings of the region."""
    said = [_REWRITE, f"Answer with one code block only, fenced with {fence}."]
    said += [_file("From", excerpt, fence) for excerpt in parts.related]
    if parts.edits:
        changes = "".join(f"{hunk.path}\n{diff_text(hunk)}" for hunk in parts.edits)
        said.append(f"Recent changes, oldest first:\n{fence_for(changes)}diff\n{changes}{fence_for(changes)}")
    body = f"{parts.prefix}{_START}\n{_marked(region)}{_END}\n{parts.suffix}"
    name = f"The file {parts.path}" if parts.path else "The file"
    said.append(f"{name}:\n{fence}\n{_ended(body)}{fence}")
    return "\n\n".join(said)


def _file(word: str, excerpt: Excerpt, fence: str) -> str:
    own = max(fence, fence_for(excerpt.text), key=len)
    return f"{word} {excerpt.path}:\n{own}\n{_ended(excerpt.text)}{own}"


def _marked(region: EditRegion) -> str:
    if region.cursor is None:
        return _ended(region.text)
    return _ended(f"{region.text[: region.cursor]}{_CURSOR}{region.text[region.cursor :]}")


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _fence(parts: PromptParts, region: EditRegion) -> str:
    return fence_for(f"{parts.prefix}{parts.suffix}{region.text}")


def fence_for(text: str) -> str:
    """A fence that does not occur in `text`."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest + 1)


def closed(text: str) -> bool:
    """Whether the block, which was opened for the model, is closed."""
    return _end(text) is not None


def inside(text: str, *, whole: bool = True) -> str:
    """The text in the block, which was opened for the model; if the model opens it again, that block counts.

    The line end before the closing fence belongs to the fence. With `whole` false the text may continue, and what may
    still become the closing fence is left out.
    """
    opening = _OPENING.match(text)
    end = _end(text)
    if opening is not None:
        text, end = text[opening.end() :], None if end is None else end - opening.end()
    elif not whole and text.lstrip().startswith("`"):
        return ""
    if end is not None:
        return text[:end].removesuffix("\n").removesuffix("\r")
    return text if whole else _MAY_CLOSE.sub("", text)


def _end(text: str) -> int | None:
    """Where the closing fence starts."""
    opening = _OPENING.match(text)
    found = _CLOSING.search(text, 0 if opening is None else opening.end())
    return None if found is None else found.start()


# Qwen2's own pattern; Dream's tokenizer is a copy of Qwen2's.
_QWEN: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_NAMED: Final = re.compile(r"</?[^\s<>]+>|\[[A-Z_]+\]")
# Added to vocabularies so that web pages take fewer tokens: treated as ordinary text.
_HTML: Final = re.compile(
    r"a|b|blockquote|br|caption|code|div|em|h[1-6]|hr|i|img|li|ol|p|pre|s|span|strong|su[bp]|t(able|body|d|foot|h|head|r)|ul?"
)
_BYTE_PIECE: Final = re.compile(r"<0x([0-9A-F]{2})>")


def _read_files(folder: Path) -> tuple[dict[str, Any], dict[str, tuple[int, bool]]]:
    """The tokenizer in `folder`, in the form of a `tokenizer.json`, and the added tokens of every file.

    For each of these its id, and whether the files mark it as special; makers fail to mark many a control token.

    Raises:
        TokenizerError: files are missing or damaged, or of an unknown kind.
    """
    said = _object(folder / "tokenizer_config.json")
    if (folder / "tokenizer.json").is_file():
        description = _object(folder / "tokenizer.json")
    elif (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        description = _from_slow(folder, str(said.get("tokenizer_class", "")))
    else:
        raise TokenizerError(f"{folder} has no tokenizer.json, and no vocab.json with merges.txt")
    found: dict[str, tuple[int, bool]] = {}
    try:
        for entry in description.get("added_tokens") or ():
            found[entry["content"]] = int(entry["id"]), bool(entry.get("special"))
        for name, number in _object(folder / "added_tokens.json").items():
            found.setdefault(name, (int(number), False))
        for number, entry in (said.get("added_tokens_decoder") or {}).items():
            _, special = found.get(entry["content"], (0, False))
            found[entry["content"]] = int(number), special or bool(entry.get("special"))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TokenizerError(
            f"the tokenizer files in {folder} contain a malformed added token: {cause(error)}"
        ) from error
    return description, dict(sorted(found.items(), key=lambda token: token[1][0]))


def _from_slow(folder: Path, kind: str) -> dict[str, Any]:
    """The library's conversion of a slow byte-level tokenizer."""
    try:
        for name in ("vocab.json", "merges.txt"):
            # The library would wait for a pipe.
            read_whole(folder / name, MOST_TABLE_BYTES)
        fast = FastTokenizer(BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    except Exception as error:
        raise TokenizerError(f"cannot read vocab.json and merges.txt in {folder}: {error}") from error
    fast.decoder = decoders.ByteLevel()
    if "qwen" in kind.lower() or "dream" in kind.lower():
        fast.normalizer = normalizers.NFC()
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        fast.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(_QWEN), behavior="isolated"), byte_level]
        )
    elif "gpt2" in kind.lower():
        fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        raise TokenizerError(
            f"{folder} has no tokenizer.json, and tokenizer_config.json has {kind or 'no tokenizer_class'}: "
            "from vocab.json and merges.txt, Calomel can build only the tokenizers of Qwen2 and GPT-2"
        )
    described: dict[str, Any] = json.loads(fast.to_str())
    return described


def _object(path: Path) -> dict[str, Any]:
    return read_object(path, TokenizerError, MOST_TABLE_BYTES)


class PublishedTokenizer(TextTokenizer):
    """A published checkpoint's tokenizer.

    Args:
        folder: the checkpoint's.
        end: id of the token that ends an answer, as the engine knows it.
        mask: id of the mask token; -1 if there is none.
        names: of further control tokens, which may be in the vocabulary of text.

    Raises:
        TokenizerError: files are missing or damaged.
    """

    def __init__(self, folder: Path, *, end: int, mask: int = -1, names: Iterable[str] = ()) -> None:
        described, published = _read_files(folder)
        wanted = set(names)
        vocabulary = _vocabulary(described)
        control = {
            name: number
            for name, (number, special) in published.items()
            if special or name in wanted or _controls(name)
        }
        control |= {name: vocabulary[name] for name in wanted if name in vocabulary}
        by_id = {number: name for name, number in vocabulary.items()} if vocabulary else {}
        for number in (end, mask):
            if number >= 0 and number not in control.values():
                if number in by_id and not _NAMED.fullmatch(by_id[number]):
                    raise TokenizerError(
                        f"token {number} ends answers or is the mask in config.json of {folder}, but is text in its "
                        f"tokenizer ({by_id[number]!r}): they belong to different checkpoints"
                    )
                control[by_id.get(number, f"<token {number}>")] = number
        # All of them stay, for the library renumbers them; it can be told to read special ones as text.
        added = [{**token, "special": token["content"] in control} for token in described.get("added_tokens") or ()]
        # What it adds around every text (a token or a space at the beginning) is left to the prompt.
        bare = {
            **described,
            "added_tokens": added,
            "normalizer": _without_blank(described.get("normalizer")),
            "pre_tokenizer": _without_blank(described.get("pre_tokenizer")),
            "post_processor": None,
            "truncation": None,
            "padding": None,
        }
        try:
            fast = FastTokenizer.from_str(json.dumps(bare))
        except Exception as error:
            raise TokenizerError(f"cannot read the tokenizer in {folder}: {error}") from error
        fast.encode_special_tokens = True
        self._literal = {int(token["id"]): str(token["content"]).encode() for token in added if not token["special"]}
        pieces = byte_level if "ByteLevel" in _kinds(described.get("decoder")) else _spelled
        super().__init__(fast, end=end, mask=mask, control=control, piece_bytes=pieces)

    def ids_of(self, names: Sequence[str]) -> tuple[int, ...]:
        """The ids of control tokens that must exist. Raises TokenizerError."""
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

    def _encodings(self, text: str) -> list[tuple[int, Encoding]]:
        """The text in one piece; if the vocabulary would make a control token of text, in pieces that avoid it."""
        pieces = super()._encodings(text)
        found = pieces[0][1]
        if self._special_ids.isdisjoint(found.ids):
            return pieces
        forged = next(at for at, number in enumerate(found.ids) if number in self._special_ids)
        start, end = found.offsets[forged]
        middle = (start + end + 1) // 2
        if not 0 < middle < len(text):
            raise TokenizerError("the tokenizer makes a control token of one character")
        front = self._encodings(text[:middle])
        return [*front, *((middle + at, part) for at, part in self._encodings(text[middle:]))]


def _controls(name: str) -> bool:
    return bool(_NAMED.fullmatch(name)) and not _HTML.fullmatch(name.strip("</>"))


def _without_blank(step: Any) -> Any:
    """A normalizer or pre-tokenizer that adds no space before a text, unlike those of Llama 2."""
    if not isinstance(step, dict):
        return step
    if step.get("type") == "Prepend":
        return None
    if step.get("type") == "Metaspace":
        return {**step, "prepend_scheme": "never"}
    inner = {name: [_without_blank(each) for each in step.get(name) or ()] for name in ("normalizers", "pretokenizers")}
    return {**step, **{name: [each for each in steps if each] for name, steps in inner.items() if name in step}}


def _beginning(folder: Path) -> list[str]:
    """Names of the tokens that the tokenizer puts before every text."""
    processor = _object(folder / "tokenizer.json").get("post_processor") or {}
    for each in (processor, *(processor.get("processors") or ())):
        pieces = each.get("single") if isinstance(each.get("single"), list) else []
        first = next((at for at, piece in enumerate(pieces) if "Sequence" in piece), 0)
        if first:
            return [str(piece["SpecialToken"]["id"]) for piece in pieces[:first]]
    said = _object(folder / "tokenizer_config.json")
    token = said.get("bos_token")
    name = token.get("content") if isinstance(token, dict) else token
    return [name] if said.get("add_bos_token") and name else []


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
    """A piece of a vocabulary of characters, where a lower block is a space and other bytes are spelled out."""
    byte = _BYTE_PIECE.fullmatch(piece)
    return bytes([int(byte[1], 16)]) if byte else piece.replace("\u2581", " ").encode()


@dataclass(frozen=True, slots=True)
class Published:
    """How a published checkpoint is read and prompted.

    Attributes:
        tokenizer: its own.
        fill: writes prompts for holes.
        edit: writes prompts for regions.
    """

    tokenizer: TextTokenizer
    fill: EndingRenderer
    edit: EndingRenderer

    @property
    def blind(self) -> bool:
        """Whether a region is asked for as the hole that it leaves: the model does not see its text."""
        return not isinstance(self.edit, ChatRenderer | NextEditRenderer)

    @property
    def continues(self) -> bool:
        """Whether a hole is asked for by the text before it alone."""
        return isinstance(self.fill, LeftToRightRenderer)


def open_published(folder: Path, style: PromptStyle, *, end: int, mask: int) -> Published:
    """Tokenizer and renderers of the checkpoint in `folder`.

    Args:
        folder: with its tokenizer files.
        style: of its family; not `calomel`.
        end: id of the token that ends an answer, as the engine knows it.
        mask: id of the mask token, as the engine knows it; -1 if there is none.

    Raises:
        TokenizerError: tokenizer files or template are missing or damaged, or lack what the style names.
    """
    named = token_names() if "fim_tokens" in (style.fim, style.edit) else set()
    tokenizer = PublishedTokenizer(folder, end=end, mask=mask, names=style.all_names() | named)
    fill = _renderer(style.fim, folder, style, tokenizer)
    # Base models have no template: they fill the hole that a region leaves.
    alike = style.edit == style.fim or (style.edit == "chat" and _template(folder) is None)
    return Published(tokenizer, fill, fill if alike else _renderer(style.edit, folder, style, tokenizer))


def _renderer(kind: str, folder: Path, style: PromptStyle, tokenizer: PublishedTokenizer) -> EndingRenderer:
    # Of several names of an end token, a checkpoint may have only one.
    ends = (tokenizer.end, *(tokenizer.control[name] for name in style.ends if name in tokenizer.control))
    # Some checkpoints of a family come from a tokenizer that has none.
    known = tokenizer.control
    begin = (known[style.begin],) if style.begin is not None and style.begin in known else ()
    if kind in EDIT_FORMATS:
        return NextEditRenderer(tokenizer, ends, EDIT_FORMATS[kind], begin or tokenizer.ids_of(_beginning(folder)))
    form = format_of(tokenizer.control, folder.name) if kind == "fim_tokens" else None
    if form is not None:
        return FimTokensRenderer(tokenizer, ends, form, begin or tokenizer.ids_of(_beginning(folder)))
    if kind == "around":
        return AroundRenderer(tokenizer, ends, begin, tokenizer.ids_of([] if style.close is None else [style.close]))
    template = _template(folder) if kind == "chat" else None
    if template is not None:
        return ChatRenderer(template, tokenizer, ends)
    if kind == "calomel":
        raise TokenizerError(f"no published checkpoint uses the style {kind!r}")
    return LeftToRightRenderer(tokenizer, ends, begin or tokenizer.ids_of(_beginning(folder)))


def _template(folder: Path) -> ChatTemplate | None:
    try:
        return ChatTemplate.of(folder)
    except ChatTemplateError as error:
        raise TokenizerError(str(error)) from error
