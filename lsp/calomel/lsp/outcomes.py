"""Where outcomes go: into the user's logs, as far as the settings want it."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from calomel.suggest.launch import version
from calomel.suggest.offers import Outcome
from calomel.suggest.outcome_log import OutcomeLog, outcome_log_path
from calomel.suggest.prompt_log import PromptLog, prompt_log_path
from calomel.workspace.settings import LogSettings


class Outcomes:
    """An `OutcomeSink` that follows the settings.

    Args:
        mask: hides secrets in texts, should the user want to keep them.
        warn: shows a sentence to the user, from any thread.
    """

    def __init__(self, settings: LogSettings, mask: Callable[[str], str], warn: Callable[[str], None]) -> None:
        self._mask = mask
        path, session = outcome_log_path(), secrets.token_hex(4)
        self._log = OutcomeLog(path, version=version(), session=session, warn=warn)
        self._prompts = PromptLog(prompt_log_path(path), session=session, mask=mask, warn=warn)
        self.apply(settings)

    def apply(self, settings: LogSettings) -> None:
        """Take over changed settings."""
        self._wanted = settings.outcomes
        self._text_wanted = settings.outcomes and settings.outcome_text
        self._log.mask = self._mask if settings.outcome_text else None

    def record(self, outcome: Outcome) -> None:
        """Keep one, if outcomes are kept."""
        if self._wanted:
            self._log.record(outcome)
        if self._text_wanted:
            self._prompts.record(outcome)

    def close(self) -> None:
        """Let go of the files."""
        self._log.close()
        self._prompts.close()
