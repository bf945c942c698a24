"""What no model may see: whether a file may be read, and which characters of a text are secret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calomel.workspace.preferences import PrivacySettings

Span = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a file may be read.

    Attributes:
        allowed: a model may see it.
        reason: by which rule not, such as `secret_file:.env`; empty when it may.
    """

    allowed: bool
    reason: str = ""


class Privacy:
    """Both answers, for one editor's folders. May be asked from several threads."""

    def __init__(self, folders: Sequence[Path] = (), settings: PrivacySettings | None = None) -> None:
        self.configure(folders, settings or PrivacySettings())

    def configure(self, folders: Sequence[Path], settings: PrivacySettings) -> None:
        """Take over other folders or settings."""
        self._folders = tuple(folders)
        self._settings = settings

    def allowed(self, path: Path | None, language_id: str | None = None) -> Verdict:
        """Whether a model may see the file; None is a document that was never saved."""
        return Verdict(allowed=True)

    def allowed_folder(self, path: Path) -> Verdict:
        """Whether anything in the folder may be read; a walk need not go into others."""
        return Verdict(allowed=True)

    def mask(self, text: str) -> str:
        """The text with every character of a secret replaced by `*`, line ends kept: same length, same lines."""
        return text

    def spans(self, text: str) -> list[Span]:
        """The secrets in the text, as (start, end, kind), ascending and apart."""
        return []
