"""What a renderer is told of a family's style; `calomel.families.style` has such values."""

from __future__ import annotations

from typing import Literal, Protocol


class FimNames(Protocol):
    """The tokens of a fill-in-the-middle format, by name."""

    @property
    def prefix(self) -> str:
        """Stands before the prefix."""

    @property
    def suffix(self) -> str:
        """Stands before the suffix."""

    @property
    def middle(self) -> str:
        """The answer comes behind it."""

    @property
    def order(self) -> Literal["psm", "spm"]:
        """Prefix, suffix, middle; or suffix, prefix, middle."""

    @property
    def repo(self) -> str | None:
        """Stands before a repository's name."""

    @property
    def file(self) -> str | None:
        """Stands before a file's path."""


class Style(Protocol):
    """How a family is asked."""

    @property
    def fim(self) -> Literal["calomel", "fim_tokens", "around", "chat"]:
        """How a hole is shown."""

    @property
    def edit(self) -> Literal["calomel", "fim_tokens", "around", "chat"]:
        """How a region that may be rewritten is shown."""

    @property
    def mask(self) -> str | None:
        """Name of the mask token."""

    @property
    def ends(self) -> tuple[str, ...]:
        """Names of the tokens that end an answer."""

    @property
    def begin(self) -> str | None:
        """Name of a token at the start of every context."""

    @property
    def close(self) -> str | None:
        """Name of a token behind every suffix."""

    @property
    def names(self) -> FimNames | None:
        """Of the tokens of `fim_tokens`."""

    @property
    def template(self) -> str | None:
        """A chat template for checkpoints whose folder has none."""


def all_names(style: Style) -> set[str]:
    """Every token that the style names."""
    named = {style.mask, style.begin, style.close, *style.ends}
    if style.names is not None:
        tokens = style.names
        named |= {tokens.prefix, tokens.suffix, tokens.middle, tokens.repo, tokens.file}
    return {name for name in named if name is not None}
