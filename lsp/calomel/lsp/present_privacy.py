"""The rules of privacy as they are now, for those who were given them once."""

from __future__ import annotations

from pathlib import Path

from calomel.workspace.privacy import Privacy, Verdict


class PresentPrivacy:
    """Asks the rules that hold now: settings and folders change while a session lasts. Safe from several threads."""

    def __init__(self, rules: Privacy) -> None:
        self.rules = rules

    def allowed(self, path: Path | None, language_id: str | None = None) -> Verdict:
        """As `Privacy.allowed`."""
        return self.rules.allowed(path, language_id)

    def allowed_text(self, text: str) -> Verdict:
        """As `Privacy.allowed_text`."""
        return self.rules.allowed_text(text)

    def mask(self, text: str) -> str:
        """As `Privacy.mask`."""
        return self.rules.mask(text)
