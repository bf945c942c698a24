"""Fill-in-the-middle prompts in the tokens of other makers' models: written for a model, and read from a client.

    [repository] name [file] path text … [file] path [prefix] prefix [suffix] suffix [middle]  →  middle
    [suffix] suffix [prefix] prefix [middle]  →  middle

A model is asked in the format of its own tokens, which its tokenizer tells; a model behind another server gets them in
a text. A client's prompt is one text; its format is recognised by how it begins and ends. If the user's text contains a
token too, the first place where the format allows it counts: the text ends at the cursor, so the worst case is a poor
guess.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Final

from calomel.prompts.edit_prompt import split_files
from calomel.prompts.own import FimTokens, last_tokens
from calomel.prompts.parts import Excerpt, PromptParts
from calomel.prompts.renderer import PlainAnswer, window
from calomel.prompts.tokenizer import TextTokenizer


class LeftToRightRenderer(PlainAnswer):
    """Shows the text before a hole, or before a region, whose own text is not shown.

    Args:
        tokenizer: of the model.
        ends: ids that end an answer.
        begin: ids at the start of every context.
    """

    def __init__(self, tokenizer: TextTokenizer, ends: Sequence[int], begin: Sequence[int] = ()) -> None:
        super().__init__(tokenizer, ends)
        self._begin = tuple(begin)

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """The window may take all the room; other files get the rest, those given last first."""
        room = max_context - len(self._begin)
        before, cut = last_tokens(parts.prefix, room, self._tokenizer)
        front: list[int] = []
        related = (*parts.related, *parts.far)
        for first in reversed(range(len(related))):
            ids = self._tokenizer.encode(write_front(related[first:], parts.path))
            if len(ids) > room - len(before):
                break
            front = ids
        context = (*self._begin, *front, *before)
        if not context:
            # A model needs something to begin with: an empty line is what most files could have there.
            context = tuple(self._tokenizer.encode("\n"))
        return FimTokens(context, reuse=len(context), cut=cut)


def write_front(files: Sequence[Excerpt], path: str | None) -> str:
    """What comes before the text of a file: other files, and its own name behind them; empty without other files.

    With the file that defines a name in front, SmolLM2-135M gave a line that uses it 1.28 times the probability a token
    (24 lines of the standard library); comments or another sign before the path made no difference.
    """
    others = "".join(f"// {each.path}\n{each.text.rstrip()}\n\n" for each in files)
    return f"{others}// {path or 'untitled'}\n" if others else ""


@dataclass(frozen=True, slots=True)
class FimFormat:
    """The tokens of one family of models.

    Attributes:
        prefix: precedes the text before the hole.
        suffix: precedes the text after the hole.
        middle: where the answer begins; empty if it begins right after the text before the hole.
        files: precedes another file, whose path ends the line.
        within: other files come after the prefix token, and the file itself with them.
        padded: there is a space on the inner side of each token, as the format adds it.
        suffix_first: a model gets the suffix before the prefix, as in its training.
        repository: precedes the name of the repository, before all files.
        end: ends an answer, if the model has a token of its own for that.
        names_itself: in a text for a server, the file's own path comes behind the prefix token.
        headed: in a text for a server, the file's own path is always there.
        stops: end an answer, too.
        infill: llama.cpp's `/infill` writes it as the model was trained.
    """

    prefix: str
    suffix: str
    middle: str
    files: tuple[str, ...] = ()
    within: bool = False
    padded: bool = False
    suffix_first: bool = False
    repository: tuple[str, ...] = ()
    end: str = ""
    names_itself: bool = False
    headed: bool = False
    stops: tuple[str, ...] = ()
    infill: bool = True

    @property
    def tokens(self) -> tuple[str, str, str]:
        """Before the prefix, before the suffix and before the answer, as a tokenizer has them."""
        blank = _BLANK * self.padded
        return f"{blank}{self.prefix}", f"{blank}{self.suffix}", f"{blank}{self.middle}"

    @property
    def names(self) -> tuple[str, ...]:
        """Every token of the format, as a tokenizer has them: none of them occurs in an answer."""
        return (*self.tokens, *self.files, *self.repository, *([self.end] if self.end else []))

    @property
    def marks(self) -> tuple[str, ...]:
        """The tokens around a hole, as they are in a text."""
        return tuple(mark for mark in (self.prefix, self.suffix, self.middle) if mark)

    @property
    def broken(self) -> tuple[tuple[str, str], ...]:
        """Every token of the format as it is in a text, and how it is written where it is the user's."""
        return tuple(
            (mark, f"{mark[:1]} {mark[1:]}")
            for mark in dict.fromkeys((*self.marks, *self.ends, *self.files, *self.repository))
        )

    @property
    def ends(self) -> tuple[str, ...]:
        """What ends an answer, as text, the end token first: a model that begins another file is done, too."""
        return tuple(
            each.lstrip(_BLANK) for each in (self.end, *self.files[:1], *self.repository[:1], *self.stops) if each
        )


# A space in a vocabulary of characters.
_BLANK: Final = "\u2581"
_TEXT_END: Final = "<|endoftext|>"
# Qwen2.5-Coder (arXiv 2409.12186) and most fine-tunes.
_QWEN: Final = FimFormat(
    "<|fim_prefix|>",
    "<|fim_suffix|>",
    "<|fim_middle|>",
    ("<|file_sep|>", "<|file_separator|>"),
    repository=("<|repo_name|>",),
    end=_TEXT_END,
)
_CODESTRAL: Final = FimFormat("[PREFIX]", "[SUFFIX]", "", ("+++++ ",), within=True, suffix_first=True)
_FORMATS: Final = (
    _QWEN,
    # StarCoder2 (arXiv 2402.19173), whose files begin behind the prefix token, and its kin; SantaCoder.
    FimFormat(
        "<fim_prefix>",
        "<fim_suffix>",
        "<fim_middle>",
        ("<file_sep>", "<filename>"),
        repository=("<repo_name>", "<reponame>"),
        end=_TEXT_END,
        names_itself=True,
    ),
    FimFormat("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
    # DeepSeek-Coder: the second one names the hole.
    FimFormat("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", end="<｜end▁of▁sentence｜>"),  # noqa: RUF001 (its own)
    # GLM.
    FimFormat("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
    # CodeLlama.
    FimFormat("<PRE>", "<SUF>", "<MID>", padded=True, end="\u2581<EOT>"),
    # Seed-Coder.
    FimFormat(
        "<[fim-prefix]>",
        "<[fim-suffix]>",
        "<[fim-middle]>",
        ("<filename>",),
        within=True,
        suffix_first=True,
        end="<[end▁of▁sentence]>",
    ),
    _CODESTRAL,
)
_NAMES: Final = ("qwen", "starcoder", "santacoder", "deepseek", "glm", "codellama", "seed", "codestral")
# Known by a model's name alone: the tokens around a hole are those of another format.
_ALIKE: Final = {
    # CodeGemma (arXiv 2406.11409): no token for repositories.
    "codegemma": replace(_QWEN, files=("<|file_separator|>",), repository=(), end="<|file_separator|>"),
    # StarCoder (arXiv 2305.06161) and Granite Code, which has its tokens; StarCoder2's are others.
    "granite": replace(_FORMATS[1], files=("<filename>",), repository=("<reponame>",), names_itself=False),
    # Granite 4 and 4.1: no place for other files is known.
    "granite4": replace(_QWEN, files=(), repository=(), end="<|end_of_text|>"),
    # Mellum and Mellum 2 (arXiv 2605.31268): StarCoder's tokens in an order of their own.
    "mellum": replace(
        _FORMATS[1],
        files=("<filename>",),
        repository=(),
        names_itself=False,
        headed=True,
        suffix_first=True,
        stops=("<fim_suffix>", "<fim_prefix>", "<fim_middle>"),
        infill=False,
    ),
}
# Without such tokens a model continues the text before the hole.
LEFT_TO_RIGHT: Final = FimFormat("", "", "")
FORMATS: Final[Mapping[str, FimFormat]] = {
    **dict(zip(_NAMES, _FORMATS, strict=True)),
    **_ALIKE,
    "left-to-right": LEFT_TO_RIGHT,
}
# Parts of model names, in lower case: they tell the order and the files, and the tokens where no tokenizer does.
_MODELS: Final[Mapping[str, str]] = {
    "granite-4": "granite4", "granite4": "granite4", "granite_4": "granite4", "mellum": "mellum",
    "starcoder2": "starcoder", "starcoder": "granite", "granite": "granite", "stable-code": "granite",
    "santacoder": "santacoder",
    "deepseek-coder": "deepseek", "codegeex": "glm", "glm": "glm", "codellama": "codellama", "code-llama": "codellama",
    "seed-coder": "seed", "seed_coder": "seed",
    # Zeta 2 and 2.1 are Seed-Coder's, the first Zeta is Qwen2.5-Coder's.
    "zeta-2": "seed", "zeta2": "seed", "zeta_2": "seed", "zeta": "qwen", "codestral": "codestral", "sweep": "qwen",
    "codegemma": "codegemma", "qwen": "qwen",
}  # fmt: skip
# What most makers' control tokens look like: broken up by a space or not, and the start of one at the end of a text.
_CONTROL: Final = re.compile(r"< ?([|｜][^\s<>|｜]+[|｜]>|/s>)")  # noqa: RUF001 (DeepSeek's)
_BEGUN: Final = re.compile(r"(?:[<\[] ?[^\s<>\[\]]{0,40}|\+[ +]*)\Z")
# Names of repositories say nothing about code.
_REPOSITORY: Final = re.compile(r"\A(?:<\|repo_name\|>|<repo_name>|<reponame>)[^\n]*\n?")
# Some clients add the token that their server would put before the text.
_BEGINNINGS: Final = ("<s>", "<bos>", "<｜begin▁of▁sentence｜>", "<|endoftext|>")  # noqa: RUF001
# What a client sends for "nothing after the cursor".
NOTHING: Final = _TEXT_END
_FILES_KEPT: Final = 64
# No client says what the repository is called.
_REPOSITORY_NAME: Final = "project"
# Excerpts hardly change from one keystroke to the next.
_REMEMBERED: Final = 1024


def format_of(names: Container[str], model: str = "") -> FimFormat | None:
    """The format whose tokens are all in `names`, those of a tokenizer; None if there is no such format.

    Of several with the same tokens, the one of a model of this name.
    """
    forms = (form for form in likeliest(model) if form.middle)
    return next((form for form in forms if all(name in names for name in form.tokens)), None)


def likeliest(model: str) -> Iterator[FimFormat]:
    """All formats with tokens, first those of models of this name."""
    small = model.lower()
    named = (FORMATS[form] for name, form in _MODELS.items() if name in small)
    yield from (form for form in dict.fromkeys((*named, *FORMATS.values())) if form.marks)


def token_names() -> set[str]:
    """The tokens of all formats that models are asked in, and those that end their answers."""
    return {name for form in _FORMATS if form.middle for name in (*form.tokens, form.end) if name}


class FimTokensRenderer(PlainAnswer):
    """Writes a hole, or the hole that a region leaves, in the tokens of a format.

    Args:
        tokenizer: the model's; has the three tokens of the format.
        ends: ids that end an answer.
        form: the format.
        begin: ids at the start of every context.
    """

    def __init__(
        self, tokenizer: TextTokenizer, ends: Sequence[int], form: FimFormat, begin: Sequence[int] = ()
    ) -> None:
        super().__init__(tokenizer, ends)
        known = tokenizer.control
        self._ids = [known[name] for name in form.tokens]
        self._suffix_first, self._within = form.suffix_first, form.within
        self._headed_always = form.within or form.headed
        self._begin = tuple(begin)
        files = [known[name] for name in form.files if name in known][:1]
        # Within a prompt it need not be a token of its own.
        self._file = tuple(files) or tuple(tokenizer.encode(form.files[0]) if form.within else ())
        named = [known[name] for name in form.repository if name in known][:1]
        self._repository = [*named, *tokenizer.encode(f"{_REPOSITORY_NAME}\n")] if named else []
        self._headed = lru_cache(maxsize=_REMEMBERED)(lambda path, text: tuple(tokenizer.encode(f"{path}\n{text}")))

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """The window may take all the room; other files get the rest, if the format has a place for them."""
        prefix, suffix, middle = self._ids
        room = max_context - len(self._begin) - len(self._ids)
        before, behind, cut = window(parts.prefix, parts.suffix, room, self._tokenizer)
        files = self._files(parts, room - len(before) - len(behind))
        if self._suffix_first:
            inner, outer = (files, []) if self._within else ([], files)
            front = [*self._begin, *outer, suffix, *behind, prefix, *inner, *before]
            return FimTokens((*front, middle), reuse=len(front), cut=cut)
        front = [*self._begin, *files, prefix, *before]
        return FimTokens((*front, suffix, *behind, middle), reuse=len(front), cut=cut)

    def _files(self, parts: PromptParts, room: int) -> list[int]:
        """As many other excerpts as fit, the last ones first, and the file's own name.

        Without excerpts nothing, unless the format has files within.
        """
        if not self._file:
            return []
        own = [*self._file, *self._headed(parts.path, "")] if parts.path else []
        room -= len(self._repository) + len(own)
        kept: list[tuple[int, ...]] = []
        for excerpt in reversed((*parts.related, *parts.far)):
            ids = (*self._file, *self._headed(excerpt.path, excerpt.text))
            room -= len(ids)
            if room < 0:
                break
            kept.append(ids)
        if not kept and (room < 0 or not self._headed_always):
            return []
        return [*self._repository, *chain.from_iterable(kept[::-1]), *own]


def format_named(model: str) -> FimFormat | None:
    """The format of a model of this name, or of a template that contains its tokens; None if unknown."""
    small = model.lower()
    shown = (form for form in _FORMATS if all(mark in model for mark in form.marks))
    return next(shown, None) or next((FORMATS[form] for name, form in _MODELS.items() if name in small), None)


def write_fim(parts: PromptParts, form: FimFormat) -> str:
    """A fill-in-the-middle prompt as one text, for a server that recognises the tokens in it.

    Such tokens in the user's text are broken up (`escape`). Of other files only `related` is shown, if the format has a
    place for files.
    """

    def plain(text: str) -> str:
        return escape(text, form)

    if form is LEFT_TO_RIGHT:
        return plain(f"{write_front(parts.related, parts.path)}{parts.prefix}")

    before, behind, blank = plain(parts.prefix), plain(parts.suffix), " " * form.padded
    front = ""
    if form.files and (parts.related or form.within or form.headed):
        name = f"{form.repository[0]}{_REPOSITORY_NAME}\n" if form.repository else ""
        others = "".join(f"{form.files[0]}{plain(each.path)}\n{plain(each.text)}\n" for each in parts.related)
        own = f"{plain(parts.path or 'untitled')}\n"
        front = f"{name}{others}{form.files[0]}" + own * (not form.names_itself)
        before = own * form.names_itself + before
    if form.within:
        front, before = "", front + before
    if form.suffix_first:
        return f"{front}{form.suffix}{behind}{form.prefix}{before}{form.middle}"
    return f"{front}{form.prefix}{blank}{before}{blank}{form.suffix}{behind}{blank}{form.middle}"


def escape(text: str, form: FimFormat) -> str:
    """The user's text with every token of the format, and whatever looks like one, broken up by a space."""
    # A server that knows the model reads tokens of chats and of padding in a prompt, too.
    text = _CONTROL.sub(r"< \1", text)
    for mark, broken in form.broken:
        # What is left of a longer run can be another one.
        while mark in text:
            text = text.replace(mark, broken)
    return text


def unescape(text: str, form: FimFormat, *, growing: bool = False) -> str:
    """Reverses `escape` in an answer that repeats the text; `growing`: without an end that could become a token."""
    text = _CONTROL.sub(r"<\1", _BEGUN.sub("", text) if growing else text)
    for mark, broken in form.broken:
        while broken in text:
            text = text.replace(broken, mark)
    return text


def parse_fim(prompt: str, suffix: str | None = None) -> PromptParts:
    """Read a prompt: a hole, its file's path if given, and excerpts of other files in the prompt's order.

    A prompt of no known format is the text before the hole.

    Args:
        prompt: from a client.
        suffix: the text after the hole, if the client sends it separately.
    """
    apart = None if suffix is None or suffix == NOTHING else suffix
    if not apart:
        text = _without_beginning(prompt)
        found = next((found for form in _FORMATS if (found := _parsed(text, form))), None)
        if found is not None:
            return found
    return _unmarked(prompt, apart or "")


def _parsed(text: str, form: FimFormat) -> PromptParts | None:
    """The prompt in one format; None if it has another."""
    begin = _begin(text, form)
    if begin is None:
        return None
    head, body = text[:begin], text[begin:]
    halves = _halves(body, form)
    if halves is None:
        return None
    before, behind = halves
    files = split_files(head, form.files)
    if form.within:
        files += split_files(before, form.files)
        path, before = files.pop()
    else:
        # The name of the file itself comes right before its text.
        path = files.pop()[0] if files and not files[-1][1].strip() else None
        files = [(name, content) for name, content in files if name is not None]
    return PromptParts(_related(files), path=path, prefix=before, suffix=behind)


def _begin(text: str, form: FimFormat) -> int | None:
    """Where the first token of the format is: at the beginning, or after other files."""
    tokens = (form.prefix, form.suffix)
    if text.startswith(tokens):
        return 0
    if form.within:
        return None
    if text.startswith(form.files or "\0"):
        found = [at + 1 for token in tokens if (at := text.find(f"\n{token}")) >= 0]
        return min(found, default=None)
    # Some clients put words of their own before the prompt; its end shows what it is.
    found = [at for token in tokens if (at := text.find(token)) >= 0] if text.endswith(form.middle) else []
    return min(found, default=None)


def _halves(body: str, form: FimFormat) -> tuple[str, str] | None:
    """The texts before and after the hole; None if the prompt does not have this format."""
    joined = form.prefix + " " * form.padded + form.suffix
    if body.startswith(joined) and form.middle:
        # Suffix first, as in StarCoder and CodeLlama: the text before the hole comes last.
        behind, found, before = body[len(joined) :].partition(" " * form.padded + form.middle + " " * form.padded)
        return (before, behind) if found else None
    if form.middle and not body.endswith(form.middle):
        return None
    body = body.removesuffix(form.middle)
    if body.startswith(form.suffix):
        behind, found, before = body[len(form.suffix) :].partition(form.prefix)
    elif form.middle:
        blank = " " * form.padded
        before, found, behind = body[len(form.prefix) :].partition(blank + form.suffix)
        before, behind = before.removeprefix(blank), behind.removesuffix(blank)
    else:
        return None
    return (before, behind) if found else None


def _unmarked(prompt: str, suffix: str) -> PromptParts:
    """A prompt that is the text before the hole; clients may put other files, or just the file's name, before it."""
    for form in (_QWEN, _CODESTRAL):
        if prompt.startswith(form.files):
            head, token, text = prompt.partition(f"\n{form.prefix}")
            if token or form.within:
                files = split_files(f"{head}\n" if token else head, form.files)
                path, own = files.pop()
                return PromptParts(_related(files), path=path, prefix=text if token else own, suffix=suffix)
    return PromptParts(prefix=prompt.removeprefix(_QWEN.prefix), suffix=suffix)


def _related(files: Sequence[tuple[str | None, str]]) -> tuple[Excerpt, ...]:
    return tuple(Excerpt(name or "", 0, text) for name, text in files if text.strip())[-_FILES_KEPT:]


def _without_beginning(prompt: str) -> str:
    """The prompt without a model's beginning-of-text token and without the repository's name."""
    beginning = next((token for token in _BEGINNINGS if prompt.startswith(token)), "")
    return _REPOSITORY.sub("", prompt.removeprefix(beginning))
