"""A hole between the fill-in-the-middle tokens of other makers' models: written for a model, and read from a client.

    [file] path text …  [prefix] prefix [suffix] suffix [middle]  →  middle
    [file] path text …  [suffix] suffix [prefix] prefix [middle]  →  middle

A model is asked in the second way, without files. A client's prompt is one text. It says itself which format it has, by
how it begins and how it ends. A token that the user's text holds as well counts where the format wants it first: the
text goes to the cursor, so the worst is a poor guess.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calomel.prompts.edit_prompt import split_files
from calomel.prompts.own import FimTokens
from calomel.prompts.parts import Excerpt, PromptParts
from calomel.prompts.renderer import PlainAnswer, window
from calomel.prompts.tokenizer import TextTokenizer


@dataclass(frozen=True, slots=True)
class _Format:
    """The tokens of one family of models.

    Attributes:
        prefix: before the text before the hole.
        suffix: before the text behind the hole.
        middle: where the answer begins; empty where it begins right behind the text before the hole.
        files: before another file, whose path ends the line.
        within: other files stand behind the prefix token, and the file itself with them.
        padded: there is a blank on the inner side of each token, as the format adds it.
    """

    prefix: str
    suffix: str
    middle: str
    files: tuple[str, ...] = ()
    within: bool = False
    padded: bool = False


# Qwen2.5-Coder and most fine-tunes; CodeGemma's tokens differ for files alone.
_QWEN: Final = _Format("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", ("<|file_sep|>", "<|file_separator|>"))
_CODESTRAL: Final = _Format("[PREFIX]", "[SUFFIX]", "", ("+++++ ",), within=True)
_FORMATS: Final = (
    _QWEN,
    # StarCoder, StarCoder2, Granite; SantaCoder.
    _Format("<fim_prefix>", "<fim_suffix>", "<fim_middle>", ("<file_sep>", "<filename>")),
    _Format("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
    # DeepSeek-Coder: the second one names the hole.
    _Format("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # noqa: RUF001 (its own letters)
    # GLM.
    _Format("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
    # CodeLlama.
    _Format("<PRE>", "<SUF>", "<MID>", padded=True),
    # Seed-Coder.
    _Format("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", ("<filename>",), within=True),
    _CODESTRAL,
)
# Names of repositories say nothing about code.
_REPOSITORY: Final = re.compile(r"\A(?:<\|repo_name\|>|<repo_name>|<reponame>)[^\n]*\n?")
# Some clients put the token before the text that their server would put there.
_BEGINNINGS: Final = ("<s>", "<bos>", "<｜begin▁of▁sentence｜>", "<|endoftext|>")  # noqa: RUF001
# What a client sends for "nothing behind the cursor".
NOTHING: Final = "<|endoftext|>"
_FILES_KEPT: Final = 64


class FimTokensRenderer(PlainAnswer):
    """Shows a hole, or the hole that a region leaves, between the tokens of a format: the suffix first.

    Args:
        tokenizer: of the model.
        ends: ids that end an answer.
        ids: what stands before the prefix, before the suffix, and before the answer.
        begin: ids at the start of every context.
    """

    def __init__(
        self, tokenizer: TextTokenizer, ends: Sequence[int], ids: Sequence[int], begin: Sequence[int] = ()
    ) -> None:
        super().__init__(tokenizer, ends)
        self._ids = ids
        self._begin = tuple(begin)

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """The window, which has all the room; such formats have no place for other files and edits."""
        prefix, suffix, middle = self._ids
        before, behind, cut = window(parts.prefix, parts.suffix, max_context - len(self._begin) - 3, self._tokenizer)
        front = (*self._begin, suffix, *behind, prefix, *before)
        return FimTokens((*front, middle), reuse=len(front), cut=cut)


def parse_fim(prompt: str, suffix: str | None = None) -> PromptParts:
    """Read a prompt: a hole, its file's path if the prompt says it, and excerpts of other files in the prompt's order.

    One that has no known format is the text before the hole.

    Args:
        prompt: of a client.
        suffix: the text behind the hole, where the client sends it apart.
    """
    apart = None if suffix is None or suffix == NOTHING else suffix
    if not apart:
        text = _without_beginning(prompt)
        found = next((found for form in _FORMATS if (found := _parsed(text, form))), None)
        if found is not None:
            return found
    return _unmarked(prompt, apart or "")


def _parsed(text: str, form: _Format) -> PromptParts | None:
    """The prompt in one format; None when it has another."""
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
        # The name of the file itself stands right before its text.
        path = files.pop()[0] if files and not files[-1][1].strip() else None
        files = [(name, content) for name, content in files if name is not None]
    return PromptParts(_related(files), path=path, prefix=before, suffix=behind)


def _begin(text: str, form: _Format) -> int | None:
    """Where the first token of the format is: at the beginning, or behind other files."""
    tokens = (form.prefix, form.suffix)
    if text.startswith(tokens):
        return 0
    if form.within:
        return None
    if text.startswith(form.files or "\0"):
        found = [at + 1 for token in tokens if (at := text.find(f"\n{token}")) >= 0]
        return min(found, default=None)
    # Some clients put words of their own before the prompt; its end says what it is.
    found = [at for token in tokens if (at := text.find(token)) >= 0] if text.endswith(form.middle) else []
    return min(found, default=None)


def _halves(body: str, form: _Format) -> tuple[str, str] | None:
    """The texts before and behind the hole; None when the prompt does not have this format."""
    joined = form.prefix + " " * form.padded + form.suffix
    if body.startswith(joined) and form.middle:
        # Suffix first, as StarCoder and CodeLlama write it: the text before the hole comes last.
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
    """A prompt that is the text before the hole; clients put other files before it, or the file's name alone."""
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
    """The prompt without what stands before every text of a model, and without the repository's name."""
    beginning = next((token for token in _BEGINNINGS if prompt.startswith(token)), "")
    return _REPOSITORY.sub("", prompt.removeprefix(beginning))
