"""How a family is asked: pure data, that `calomel.prompts.styles` renders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FimKind = Literal["calomel", "fim_tokens", "around", "chat"]
EditKind = Literal["calomel", "fim_tokens", "around", "chat"]


@dataclass(frozen=True, slots=True)
class FimNames:
    """The tokens of a fill-in-the-middle format, by name.

    Attributes:
        prefix: stands before the prefix.
        suffix: stands before the suffix.
        middle: the answer comes behind it.
        order: `psm` for prefix, suffix, middle; `spm` for suffix, prefix, middle.
        repo: stands before a repository's name; None where the format has none.
        file: stands before a file's path; None where the format has none.
    """

    prefix: str
    suffix: str
    middle: str
    order: Literal["psm", "spm"] = "psm"
    repo: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class PromptStyle:
    """How a family is asked.

    Attributes:
        fim: how a hole is shown. `calomel`: our own format. `fim_tokens`: by the tokens of `names`. `around`: the
            prefix as context and the suffix as the request's `suffix`, for models that read in both directions.
            `chat`: as an instruction in the checkpoint's chat template, answered in a fenced block.
        edit: how a region that may be rewritten is shown, in the same ways. Without instructions (`fim_tokens`,
            `around`) the model fills the hole that the region leaves: it does not see the region's text.
        mask: name of the mask token, so that text never forges it; None where there is none.
        ends: names of the tokens that end an answer, the first is the engine's end token.
        begin: name of a token at the start of every context; None where there is none.
        close: name of a token behind every suffix (`around` alone); None where there is none.
        names: of the tokens of `fim_tokens`.
        template: a chat template (Jinja) for checkpoints whose folder has none.
    """

    fim: FimKind
    edit: EditKind
    mask: str | None
    ends: tuple[str, ...]
    begin: str | None = None
    close: str | None = None
    names: FimNames | None = None
    template: str | None = None
