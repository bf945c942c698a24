"""What no model may see: files by their names and contents, and secrets inside of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from calomel.workspace import secrets
from calomel.workspace.ignore import MAX_BYTES, GitIgnore, PathRules, content_refusal
from calomel.workspace.settings import PrivacySettings

_LINKS: Final = 8


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a file may be read.

    Attributes:
        reason: by which rule not: `secret_file`, `excluded`, `gitignored`, `generated`, `too_large`, `unreadable`.
    """

    allowed: bool
    reason: str = ""


_ALLOWED: Final = Verdict(allowed=True)


class Privacy:
    """The rules of one user for some folders. Safe to ask from several threads."""

    def __init__(self, folders: Sequence[Path] = (), settings: PrivacySettings | None = None) -> None:
        self._settings = settings or PrivacySettings()
        self._folders = tuple(folders)
        self._rules = PathRules(self._settings.ignore)
        self._git = {folder: GitIgnore(folder) for folder in folders}

    def allowed(self, path: Path, language_id: str | None = None) -> Verdict:
        """Whether a model may see the file: judged by its path, and by that of what it links to."""
        del language_id
        verdict = self._by_path(path)
        if not verdict.allowed:
            return verdict
        try:
            target = path.resolve(strict=False)
        except (OSError, RuntimeError):
            return Verdict(allowed=False, reason="unreadable")
        if target != path:
            verdict = self._by_path(target)
        if verdict.allowed and _size(target) > MAX_BYTES:
            return Verdict(allowed=False, reason="too_large")
        return verdict

    def allowed_text(self, text: str) -> Verdict:
        """Whether the content is one that a person wrote."""
        reason = content_refusal(text)
        return _ALLOWED if reason is None else Verdict(allowed=False, reason=reason)

    def mask(self, text: str) -> str:
        """The text with secrets as asterisks, in the same length."""
        return secrets.mask(text) if self._settings.mask_secrets else text

    def spans(self, text: str) -> list[secrets.Span]:
        """Where secrets stand in the text."""
        return secrets.spans(text) if self._settings.mask_secrets else []

    def _by_path(self, path: Path) -> Verdict:
        folder = next((folder for folder in self._folders if path.is_relative_to(folder)), None)
        # Outside of every folder only the last parts tell something: the user's home is nobody's project.
        name = path.relative_to(folder).as_posix() if folder is not None else "/".join(path.parts[-3:]).lstrip("/")
        reason = self._rules.refusal(name)
        if reason is not None:
            return Verdict(allowed=False, reason=reason)
        if folder is not None and self._settings.gitignore and self._git[folder].ignores(path):
            return Verdict(allowed=False, reason="gitignored")
        return _ALLOWED


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
