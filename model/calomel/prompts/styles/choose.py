"""The tokenizer and the renderers of a published checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from calomel.prompts.chat.template import ChatTemplate, ChatTemplateError
from calomel.prompts.published.tokenizer import PublishedTokenizer
from calomel.prompts.styles.around import AroundRenderer
from calomel.prompts.styles.chat import ChatRenderer
from calomel.prompts.styles.fim_tokens import FimIds, FimTokensRenderer
from calomel.prompts.styles.names import Style, all_names
from calomel.prompts.styles.renderer import EndingRenderer
from calomel.prompts.text_tokenizer import TextTokenizer, TokenizerError


@dataclass(frozen=True, slots=True)
class Published:
    """How a published checkpoint reads and is asked.

    Attributes:
        tokenizer: its own.
        fill: writes prompts for holes.
        edit: writes prompts for regions.
    """

    tokenizer: TextTokenizer
    fill: EndingRenderer
    edit: EndingRenderer


def open_published(folder: Path, style: Style, *, end: int, mask: int) -> Published:
    """Tokenizer and renderers of the checkpoint in `folder`.

    Args:
        folder: with its tokenizer files.
        style: of its family; one that is not `calomel`.
        end: id of the token that ends an answer, as the engine knows it.
        mask: id of the mask token, as the engine knows it; -1 where there is none.

    Raises:
        TokenizerError: tokenizer files or template are missing or damaged, or lack what the style names.
    """
    tokenizer = PublishedTokenizer(folder, end=end, mask=mask, names=all_names(style))
    fill = _renderer(style.fim, folder, style, tokenizer)
    if style.edit == "chat" and style.fim != "chat" and _template(folder, style) is None:
        # Base models have no template: they fill the hole that a region leaves.
        return Published(tokenizer, fill, fill)
    return Published(
        tokenizer, fill, fill if style.edit == style.fim else _renderer(style.edit, folder, style, tokenizer)
    )


def _renderer(kind: str, folder: Path, style: Style, tokenizer: PublishedTokenizer) -> EndingRenderer:
    # Of several names of an end, a checkpoint may have one alone.
    ends = (tokenizer.end, *(tokenizer.control[name] for name in style.ends if name in tokenizer.control))
    begin = tokenizer.ids_of([] if style.begin is None else [style.begin])
    if kind == "around":
        return AroundRenderer(tokenizer, ends, begin, tokenizer.ids_of([] if style.close is None else [style.close]))
    if kind == "fim_tokens":
        names = style.names
        if names is None:
            raise TokenizerError("the family's style has no names of fill-in-the-middle tokens")
        prefix, suffix, middle = tokenizer.ids_of([names.prefix, names.suffix, names.middle])
        file = None if names.file is None else tokenizer.ids_of([names.file])[0]
        ids = FimIds(prefix, suffix, middle, suffix_first=names.order == "spm", file=file)
        return FimTokensRenderer(tokenizer, ends, ids, begin)
    if kind == "chat":
        template = _template(folder, style)
        if template is None:
            raise TokenizerError(f"{folder} has no chat template, and its family needs one to be asked")
        return ChatRenderer(template, tokenizer, ends)
    raise TokenizerError(f"no published checkpoint is asked in the style {kind!r}")


def _template(folder: Path, style: Style) -> ChatTemplate | None:
    try:
        found = ChatTemplate.of(folder)
        if found is None and style.template is not None:
            return ChatTemplate({"default": style.template})
    except ChatTemplateError as error:
        raise TokenizerError(str(error)) from error
    return found
