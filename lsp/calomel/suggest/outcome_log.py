"""The outcome log: the outcomes of suggestions, kept on this machine, for calibrating the filter.

One line of JSON per outcome, in a file that only its user can read and that is rotated when it is full. Writing never
raises; reading skips torn or foreign lines.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final
from urllib.parse import unquote, urlsplit

from msgspec import Meta

from calomel.infer.wire import read_json
from calomel.storage import keep_private, only_one, open_private, open_regular, rights_of_others
from calomel.suggest.offers import Outcome

LOG: Final = logging.getLogger(__name__)

# Ninety minutes of a recorded session, replayed, held back 340 suggestions and showed 68: 0.39 MB. Filters are fitted
# to what a person does over months; this keeps some 300 hours of editing, which are three months of four hours a day.
MAX_BYTES: Final = 10_000_000
KEPT_FILES: Final = 8


class OutcomeLog:
    """Appends outcomes to a file. Never raises: failures are counted, and reported once.

    Args:
        path: of the newest file; older ones are next to it as `path.1`, `path.2`, …
        session: name of the editor window; None for a random one.
        version: of Calomel.
        max_bytes: of one file.
        kept_files: the newest included.
        wall: seconds since 1970.
        warn: tells the user, once, that the log cannot be written.

    Attributes:
        wanted: outcomes are kept.
        lost: how many could not be.
    """

    def __init__(
        self,
        path: Path,
        *,
        session: str | None = None,
        version: str = "",
        max_bytes: int = MAX_BYTES,
        kept_files: int = KEPT_FILES,
        wall: Callable[[], float] = time.time,
        warn: Callable[[str], None] = LOG.warning,
    ) -> None:
        self.wanted = True
        self.lost = 0
        self._path = path
        self._session = session or secrets.token_hex(4)
        self._version = version
        self._max_bytes = max_bytes
        self._kept_files = kept_files
        self._wall = wall
        self._warn = warn
        self._lock = threading.Lock()
        self._file: int | None = None
        # A line was written only in part: the next one starts with a line end.
        self._torn = False

    def record(self, outcome: Outcome) -> None:
        """Append one, if outcomes are wanted."""
        if not self.wanted:
            return
        try:
            # A clock may be set to any year.
            now = min(max(0.0, self._wall()), _LATEST)
            line = line_of(outcome, time=now, session=self._session, version=self._version)
            with self._lock:
                self._append(line)
        except Exception as error:  # noqa: BLE001 - a log must not stop the typing, whatever happens
            self._lose(error)

    def close(self) -> None:
        """Close the file; a later record opens it again."""
        with self._lock:
            self._close()

    def _append(self, line: bytes) -> None:
        file = self._current()
        if os.fstat(file).st_size >= self._max_bytes:
            self._rotate()
            file = self._current()
        data = b"\n" + line if self._torn else line
        self._torn = True
        if os.write(file, data) < len(data):
            raise OSError(0, "written in part")
        self._torn = False

    def _current(self) -> int:
        """The open file, which still has the log's name."""
        if self._file is not None:
            with contextlib.suppress(FileNotFoundError):
                there, here = self._path.stat(follow_symlinks=False), os.fstat(self._file)
                if (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev):
                    return self._file
            self._close()
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = open_private(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        status = os.fstat(self._file)
        if not stat.S_ISREG(status.st_mode):
            self._close()
            raise OSError(0, "not a regular file")
        if rights_of_others(status):
            keep_private(self._file)
        # The last writer may have run out of disk space, or been killed.
        self._torn = status.st_size > 0 and self._last() != b"\n"
        return self._file

    def _rotate(self) -> None:
        """Rotate full files, unless another window is doing it or has just done it."""
        with only_one(self._path.with_name(f"{self._path.name}.lock")) as ours:
            if not ours or not self._is_full():
                return
            for number in range(self._kept_files - 1, 0, -1):
                older = numbered(self._path, number - 1)
                with contextlib.suppress(FileNotFoundError):
                    older.replace(numbered(self._path, number))
            if self._kept_files == 1:
                self._path.unlink()

    def _is_full(self) -> bool:
        """Whether the file with the log's name is full; another window may have renamed it, with no new one yet."""
        try:
            return self._path.stat(follow_symlinks=False).st_size >= self._max_bytes
        except FileNotFoundError:
            return False

    def _last(self) -> bytes:
        """The file's last byte. The file is open for appending, so the seek does not matter to writes."""
        if self._file is None:
            return b""
        os.lseek(self._file, -1, os.SEEK_END)
        return os.read(self._file, 1)

    def _close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None

    def _lose(self, error: Exception) -> None:
        self.lost += 1
        if self.lost == 1:
            why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            with contextlib.suppress(Exception):
                self._warn(f"Calomel cannot write the outcomes of suggestions to {self._path} ({why}).")


def numbered(path: Path, number: int) -> Path:
    """The file of a rotated log; 0 is the newest."""
    return path if number == 0 else path.with_name(f"{path.name}.{number}")


# Grows when an older reader would misunderstand a line; new fields alone are no reason.
FORMAT: Final = 1
# Characters replaced in names, since editors may send anything as a language.
_NAME: Final = re.compile(r"[^A-Za-z0-9_.+#-]+")
_LONGEST_NAME: Final = 64
# Only a short and plain last part of a name is an extension: `notes.about-somebody` has none.
_EXTENSION: Final = re.compile(r"\.([A-Za-z0-9]{1,10})$")
# Seconds from 1970 to the end of the year 9999.
_LATEST: Final = 253_402_300_799
# Up to here, every integer is exact as a float.
_LARGEST: Final = 2**53
_ALWAYS: Final = frozenset({"time", "id", "outcome", "probability"})
# More files than anybody keeps; the numbers only have gaps after a crash during rotation.
_MOST_FILES: Final = 100
_LONGEST_LINE: Final = 1_000_000
_Integer = Annotated[int, Meta(ge=-_LARGEST, le=_LARGEST)]
_LogNumber = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]


@dataclass(frozen=True, slots=True)
class OutcomeRecord:
    """One outcome as logged, without path or text.

    Attributes:
        time: seconds since 1970.
        id: of the suggestion.
        outcome: as `Outcome.outcome`, or a later version's.
        session: name of the editor window while it is open.
        reason: a short name, may be empty.
        kind: `fill` or `edit`.
        language: as the editor calls it.
        extension: of the file, without the dot.
        trigger: what made the editor ask.
        model: that generated it.
        maker: who proposed it; empty in lines of earlier versions.
        version: of Calomel.
        probability: the calibrator's.
        visible_seconds: how long it had been visible.
        length: of its text, in UTF-16 units.
        accepted_length: how much of it was taken.
        unit: what was taken: `all`, `lines` or `words`; empty for nothing.
        signals: `OutcomeSignals` by name.
    """

    time: Annotated[float, Meta(ge=0, le=_LATEST)]
    id: str
    outcome: str
    session: str = ""
    reason: str = ""
    kind: str = ""
    language: str = ""
    extension: str = ""
    trigger: str = ""
    model: str = ""
    maker: str = ""
    version: str = ""
    probability: _LogNumber = 0.0
    visible_seconds: _LogNumber = 0.0
    length: _Integer = 0
    accepted_length: _Integer = 0
    unit: str = ""
    signals: Mapping[str, _Integer | _LogNumber | str | list[Any] | None] = field(default_factory=dict)


def line_of(outcome: Outcome, *, time: float, session: str, version: str) -> bytes:
    """The line of an outcome, with its line end.

    Args:
        outcome: what became of a suggestion.
        time: seconds since 1970.
        session: name of the editor window.
        version: of Calomel.
    """
    values: dict[str, Any] = {
        "format": FORMAT,
        "time": round(time, 3),
        "session": session,
        "id": _plain(outcome.id),
        "outcome": outcome.outcome,
        "reason": _plain(outcome.reason),
        "kind": outcome.kind,
        "language": _plain(outcome.language_id),
        "extension": _extension(outcome.uri),
        "trigger": _plain(outcome.trigger),
        "model": _plain(outcome.model),
        "maker": _plain(outcome.maker),
        "version": version,
        "probability": outcome.probability,
        "visible_seconds": round(outcome.visible_seconds, 3),
        "length": outcome.length,
        "accepted_length": outcome.accepted_length,
        "unit": _unit(outcome),
    }
    # Empty and zero are the defaults when the line is read.
    values = {name: value for name, value in values.items() if value or name in _ALWAYS}
    if outcome.signals is not None:
        values["signals"] = outcome.signals.flat()
    return (json.dumps(_finite(values), separators=(",", ":"), allow_nan=False) + "\n").encode("ascii")


def record_of(line: bytes) -> OutcomeRecord:
    """The record of one line; unknown fields are ignored. Raises FieldError if it is not an outcome."""
    return read_json(line, OutcomeRecord)


def each_record(path: Path) -> Iterator[OutcomeRecord | None]:
    """The records of a log and its rotated files, oldest first; None for a bad line: torn by a crash, or not ours.

    Empty without a file. Raises OSError for an unreadable one.
    """
    for number in range(_MOST_FILES, -1, -1):
        for line in _lines(numbered(path, number)):
            try:
                yield record_of(line)
            except ValueError:
                if line.strip():
                    yield None


def _lines(file: Path) -> Iterator[bytes]:
    with contextlib.suppress(FileNotFoundError), open_regular(file) as opened:
        while line := opened.readline(_LONGEST_LINE):
            yield line


def _plain(name: str) -> str:
    """A client's name, reduced to what may be logged."""
    return _NAME.sub("_", name)[:_LONGEST_NAME]


def _extension(uri: str) -> str:
    try:
        name = PurePosixPath(unquote(urlsplit(uri).path)).name
    except ValueError:
        return ""
    # A leading dot is no extension: `.netrc` has none.
    match = _EXTENSION.search(name, 1)
    return match[1].lower() if match else ""


def _unit(outcome: Outcome) -> str:
    if outcome.outcome == "accepted":
        return "all"
    if outcome.outcome != "partly_accepted":
        return ""
    taken = outcome.text.encode("utf-16-le", "surrogatepass")[: 2 * outcome.accepted_length]
    rest = outcome.text[len(taken.decode("utf-16-le", "replace")) :]
    return "lines" if not rest or rest[0] in "\r\n" or taken.endswith((b"\n\0", b"\r\0")) else "words"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def outcome_log_path() -> Path:
    """The path of this user's outcome log, in the XDG state folder."""
    import platformdirs

    return platformdirs.user_state_path("calomel", appauthor=False) / "outcomes.jsonl"
