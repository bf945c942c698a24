"""What the server writes to its log: one line per event, never a user's text.

External input is never used as a format string, and its line ends and terminal codes are escaped, so that nobody can
forge a line. Exceptions are logged by type and places in the code: their messages may quote a request. A log that
cannot be written (a full disk, a closed pipe) is no reason to stop serving.
"""

from __future__ import annotations

import logging
import sys
import traceback
from typing import Final, TextIO

# The server's own loggers, and those of the libraries it serves with.
_LOGGERS: Final = ("calomel", "uvicorn", "uvicorn.error")


class Lines(logging.Formatter):
    """`2026-11-21 19:30:00,123 INFO calomel.server: message`, and indented places below an exception."""

    def format(self, record: logging.LogRecord) -> str:
        """One event."""
        line = f"{self.formatTime(record)} {record.levelname} {record.name}: {escaped(record.getMessage())}"
        return "\n".join([line, *(f"    {escaped(place)}" for place in _places(record))])


class UnfailingHandler(logging.StreamHandler[TextIO]):
    """Writes to a stream, and drops what cannot be written."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's name)
        """Ignore it: there is nowhere left to report it."""


def log_to(stream: TextIO, level: str) -> None:
    """Send the server's log to `stream`."""
    handler = UnfailingHandler(stream)
    handler.setFormatter(Lines())
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
    logging.getLogger("calomel").setLevel(level.upper())
    # Only errors of the libraries; a client that does not speak HTTP is none.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


def say(out: TextIO, line: str) -> None:
    """Print a line for whoever started the server; that nobody reads it is no reason to stop."""
    try:
        out.write(line + "\n")
        out.flush()
    except OSError:
        # Otherwise the interpreter would try to write it again at exit.
        if out is sys.stdout:
            sys.stdout = None


def escaped(text: str) -> str:
    """The text on one line, with everything that is not printable as its escape sequence."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _places(record: logging.LogRecord) -> list[str]:
    """Type and places of the record's exception."""
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return []
    places = [f"{each.filename}:{each.lineno} in {each.name}" for each in traceback.extract_tb(error.__traceback__)]
    return [type(error).__name__, *places]
