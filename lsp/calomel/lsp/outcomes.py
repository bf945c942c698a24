"""Where outcomes go: into the user's log, as far as the settings want it."""

from __future__ import annotations

from collections.abc import Callable

from calomel.suggest.model_info import version
from calomel.suggest.outcome import Outcome
from calomel.suggest.outcome_log import OutcomeLog, outcome_log_path
from calomel.workspace.settings import LogSettings


class Outcomes:
    """An `OutcomeSink` that follows the settings.

    Args:
        mask: hides secrets in a suggestion's text, should the user want to keep it.
    """

    def __init__(self, settings: LogSettings, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._log = OutcomeLog(outcome_log_path(), version=version())
        self.apply(settings)

    def apply(self, settings: LogSettings) -> None:
        """Take over changed settings."""
        self._wanted = settings.outcomes
        self._log.mask = self._mask if settings.outcome_text else None

    def record(self, outcome: Outcome) -> None:
        """Keep one, if outcomes are kept."""
        if self._wanted:
            self._log.record(outcome)

    def close(self) -> None:
        """Let go of the file."""
        self._log.close()
