"""The outcome log: what became of suggestions, on this machine, for calibrating the filter and aligning the model."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from calomel.suggest.line_log import LOG, LineLog, numbered
from calomel.suggest.outcome import Outcome
from calomel.suggest.outcome_record import line_of

__all__ = ["KEPT_FILES", "MAX_BYTES", "OutcomeLog", "numbered", "outcome_log_path"]

# Ninety minutes of a recorded session, replayed, held back 340 suggestions and showed 68: 0.39 MB. Filters are fitted
# to what a person does over months; this keeps some 300 hours of editing, which are three months of four hours a day.
MAX_BYTES: Final = 10_000_000
KEPT_FILES: Final = 8


def outcome_log_path() -> Path:
    """Where this user's outcome log lies, in the state folder of XDG."""
    import platformdirs

    return platformdirs.user_state_path("calomel", appauthor=False) / "outcomes.jsonl"


class OutcomeLog(LineLog):
    """Appends outcomes to a file. Never raises: what cannot be written is counted, and said once.

    Args:
        path: of the newest file; older ones lie beside it as `path.1`, `path.2`, …
        version: of Calomel.
        session: names the editor window; None to draw a name.
        mask: hides secrets in a suggestion's text; the text is kept only when this is given.
        max_bytes: of one file.
        kept_files: the newest included.
        wall: seconds since 1970.
        warn: tells the user, once, that outcomes cannot be written.
    """

    def __init__(
        self,
        path: Path,
        *,
        version: str = "",
        session: str | None = None,
        mask: Callable[[str], str] | None = None,
        max_bytes: int = MAX_BYTES,
        kept_files: int = KEPT_FILES,
        wall: Callable[[], float] = time.time,
        warn: Callable[[str], None] = LOG.warning,
    ) -> None:
        super().__init__(path, what="Outcomes of suggestions", max_bytes=max_bytes, kept_files=kept_files, warn=warn)
        self.mask = mask
        self._version = version
        self._wall = wall
        self._session = session or secrets.token_hex(4)

    def record(self, outcome: Outcome) -> None:
        """Append one."""
        self.write(
            lambda: line_of(outcome, time=self._wall(), session=self._session, version=self._version, mask=self.mask)
        )
