"""What no model may see: files by their names and contents, and secrets inside of others."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from calomel.workspace import secrets
from calomel.workspace.gitignore import GitIgnore
from calomel.workspace.ignore import MAX_BYTES, SNIFFED_BYTES, UserPatterns, content_refusal, generated_by_name
from calomel.workspace.preferences import PrivacySettings
from calomel.workspace.secret_files import SECRET_LANGUAGES, is_sample, secret_pattern

_KEPT_CONTENTS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a file may be read.

    Attributes:
        allowed: a model may see it.
        reason: by which rule not: `secret_file:.env`, `excluded:*.sql` (a pattern of the user's), `gitignored`,
            `generated`, `generated:*.lock`, `minified`, `binary`, `too_large`, `unreadable`; empty when it may.
    """

    allowed: bool
    reason: str = ""


_ALLOWED: Final = Verdict(allowed=True)


class Privacy:
    """The rules of one user for some folders. May be asked from several threads."""

    def __init__(self, folders: Sequence[Path] = (), settings: PrivacySettings | None = None) -> None:
        self._settings = settings or PrivacySettings()
        # The innermost folder that holds a file is the one that its patterns are about.
        self._folders = sorted((folder.absolute() for folder in folders), key=lambda folder: -len(folder.parts))
        self._patterns = UserPatterns(self._settings.ignore)
        self._git = GitIgnore()
        self._contents: dict[Path, tuple[tuple[int, int], str | None]] = {}

    def allowed(self, path: Path | None, language_id: str | None = None) -> Verdict:
        """Whether a model may see a file: judged by its name, that of what it links to, and what is in it.

        Args:
            path: of the file, which need not be there; None for a document that was never saved.
            language_id: what the editor calls it.
        """
        if path is None:
            return _refused("secret_file:dotenv") if language_id in SECRET_LANGUAGES else _ALLOWED
        path = path.absolute()
        try:
            target = Path(os.path.realpath(path))
        except (OSError, ValueError):
            return _refused("unreadable")
        reason, wanted = self._by_name(path, language_id)
        if reason is None and target != path:
            reason, wanted = self._by_name(target, language_id)
        if reason is None:
            reason = self._by_content(target, wanted=wanted)
        return _ALLOWED if reason is None else _refused(reason)

    def allowed_text(self, text: str) -> Verdict:
        """Whether a text is one that a person wrote."""
        reason = content_refusal(text)
        return _ALLOWED if reason is None else _refused(reason)

    def mask(self, text: str) -> str:
        """The text with every character of a secret replaced by `*`, line ends kept; the same object without any."""
        return secrets.mask(text) if self._settings.mask_secrets else text

    def spans(self, text: str) -> list[secrets.Span]:
        """The secrets in the text, as (start, end, kind), ascending and apart."""
        return secrets.spans(text) if self._settings.mask_secrets else []

    def _by_name(self, path: Path, language_id: str | None) -> tuple[str | None, bool]:
        """Why not, and whether the user lets it in whatever our rules say."""
        folder = next((folder for folder in self._folders if path.is_relative_to(folder)), None)
        name = path.relative_to(folder or path.anchor).as_posix()
        users = self._patterns.find(name)
        if users is not None:
            return (f"excluded:{users.pattern}" if users.excluded else None), not users.excluded
        pattern = secret_pattern(path)
        if pattern is None and language_id in SECRET_LANGUAGES and not is_sample(path):
            pattern = language_id
        if pattern is not None:
            return f"secret_file:{pattern}", False
        if self._settings.gitignore and self._git.ignores(path, folder):
            return "gitignored", False
        return generated_by_name(path, folder), False

    def _by_content(self, path: Path, *, wanted: bool) -> str | None:
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
        except OSError:
            return "unreadable"
        if not stat.S_ISREG(found.st_mode):
            return None if stat.S_ISDIR(found.st_mode) else "unreadable"
        if found.st_size > MAX_BYTES:
            return "too_large"
        state = (found.st_mtime_ns, found.st_size)
        known = self._contents.get(path)
        if known is None or known[0] != state:
            if len(self._contents) >= _KEPT_CONTENTS:
                self._contents.clear()
            known = (state, _sniff(path))
            self._contents[path] = known
        return None if wanted and known[1] in {"generated", "minified"} else known[1]


def _refused(reason: str) -> Verdict:
    return Verdict(allowed=False, reason=reason)


def _sniff(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            head = file.read(SNIFFED_BYTES)
    except OSError:
        return "unreadable"
    return content_refusal(head.decode("utf-8", errors="replace"))
