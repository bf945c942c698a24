"""The log: a private file and stderr. It never holds text of the user's documents.

Messages of exceptions can quote the user's text, so an exception is logged by its type and place.
"""

from __future__ import annotations

import logging
import os
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from calomel.storage import keep_private, open_private
from calomel.storage.failures import describe

MAX_BYTES: Final = 1_000_000
KEPT_FILES: Final = 2

# These libraries log whole messages of the protocol, and addresses with tokens.
_LOUD: Final = ("pygls", "asyncio", "httpx", "httpcore", "watchdog")


class _PrivateFile(RotatingFileHandler):
    """Readable by the user alone, from its first byte on."""

    _failed = False

    def _open(self):  # type: ignore[no-untyped-def]  # noqa: ANN202 - the base class's own return type is private
        descriptor = open_private(self.baseFilename, os.O_CREAT | os.O_APPEND | os.O_WRONLY, links=True)
        keep_private(descriptor)
        return os.fdopen(descriptor, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base class's name
        """Report once that the file cannot be written, and go on; otherwise each line would end in a traceback."""
        del record
        error = sys.exception()
        if not self._failed:
            self._failed = True
            _complain(Path(self.baseFilename), error)


def _complain(path: Path, error: BaseException | None) -> None:
    why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    print(f"calomel: no log: cannot write {path} ({why})", file=sys.stderr)  # noqa: T201 - it is all there is


class _Terse(logging.Formatter):
    """One line per record; an exception as its type and place."""

    def formatException(self, ei) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001, N802
        return describe(ei[1])


def log_path() -> Path:
    """The path of this user's log, in the XDG state folder."""
    import platformdirs

    return platformdirs.user_state_path("calomel") / "lsp.log"


def open_log(path: Path, level: str = "INFO") -> None:
    """Log to `path` from `level` on, warnings to stderr too. If the folder is not writable, only stderr remains."""
    root = logging.getLogger("calomel")
    close_log()
    formatter = _Terse("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s")
    to_stderr = logging.StreamHandler(sys.stderr)
    to_stderr.setLevel(logging.WARNING)
    handlers: list[logging.Handler] = [to_stderr]
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handlers.append(_PrivateFile(path, maxBytes=MAX_BYTES, backupCount=KEPT_FILES))
    except OSError as error:
        _complain(path, error)
    for handler in handlers:
        handler.setFormatter(formatter)
        root.addHandler(handler)
    root.propagate = False
    set_level(level)
    for name in _LOUD:
        library = logging.getLogger(name)
        library.setLevel(logging.CRITICAL)
        library.propagate = False
        library.addHandler(logging.NullHandler())


def set_level(level: str) -> None:
    """Log from `level` on; an unknown name counts as INFO."""
    logging.getLogger("calomel").setLevel(logging.getLevelNamesMapping().get(level.upper(), logging.INFO))


def close_log() -> None:
    """Detach and close what `open_log` attached."""
    root = logging.getLogger("calomel")
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
