"""One line of the outcome log: what is written of an outcome, and how a line is read again."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from calomel.prompts.tokenizer import encodable
from calomel.suggest.outcome import Outcome
from calomel.suggest.outcome_signals import OutcomeSignals

# Grows when an older reader would misunderstand a line; new fields alone are no reason.
FORMAT: Final = 1
# What an editor calls a language may be anything.
_NAME: Final = re.compile(r"[^A-Za-z0-9_.+#-]+")
_LONGEST_NAME: Final = 64
# The last part of a name is its kind only when it is short and plain: `notes.about-somebody` has none.
_EXTENSION: Final = re.compile(r"\.([A-Za-z0-9]{1,10})$")
_LONGEST_TEXT: Final = 4_000
# Seconds from 1970 to the end of the year 9999.
_LATEST: Final = 253_402_300_799
# Up to here every whole number is a float, too.
_LARGEST: Final = 2**53
_ALWAYS: Final = frozenset({"time", "id", "outcome", "probability"})
_SIGNALS: Final = tuple(each.name for each in fields(OutcomeSignals))
_TAKES: Final = b'"accepted_length":'
# It can not begin inside of a text, where quotation marks have a backslash, and no signal has braces.
_NUMBERS: Final = re.compile(rb',"signals":\{[^{}]*\}')


@dataclass(frozen=True, slots=True)
class OutcomeRecord:
    """One outcome as it stands in the log. No path, and no text unless the user wants it.

    Attributes:
        time: seconds since 1970.
        id: of the suggestion.
        outcome: as `Outcome.outcome`, or a later version's.
        session: names the editor window for as long as it is open.
        reason: a short name, may be empty.
        kind: `fill` or `edit`.
        language: as the editor calls it.
        extension: of the file, without the dot.
        trigger: what made the editor ask.
        model: that made it.
        maker: who proposed it; empty in the lines of earlier versions.
        version: of Calomel.
        probability: what the gate said.
        visible_seconds: how long it could be seen by then.
        length: of its text, in UTF-16 units.
        accepted_length: how much of it was taken.
        unit: what was taken: `all`, `lines` or `words`; empty when nothing was.
        signals: `OutcomeSignals` by name.
        text: of the suggestion, secrets masked; None unless the user wants it kept.
        extra: what a later version wrote besides.
    """

    time: float
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
    probability: float = 0.0
    visible_seconds: float = 0.0
    length: int = 0
    accepted_length: int = 0
    unit: str = ""
    signals: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


def line_of(
    outcome: Outcome, *, time: float, session: str, version: str, mask: Callable[[str], str] | None = None
) -> bytes:
    """The line of an outcome, with its end.

    Args:
        outcome: what became of a suggestion.
        time: seconds since 1970.
        session: names the editor window.
        version: of Calomel.
        mask: hides secrets; the text is written only when it is given.
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
    # What is empty or zero is so when it is read again, too.
    values = {name: value for name, value in values.items() if value or name in _ALWAYS}
    if outcome.signals is not None:
        known = ((name, getattr(outcome.signals, name)) for name in _SIGNALS)
        values["signals"] = {name: value for name, value in known if value is not None}
    if mask is not None:
        values["text"] = mask(outcome.text)[:_LONGEST_TEXT]
    # ASCII alone: half a surrogate pair, which an editor may send, is no UTF-8.
    return (json.dumps(_finite(values), separators=(",", ":"), allow_nan=False) + "\n").encode("ascii")


def record_of(line: bytes, *, in_brief: bool = False) -> OutcomeRecord:
    """The record of one line. Raises ValueError for a line that is none; what it does not know it keeps in `extra`.

    `in_brief` leaves the numbers out of lines that take nothing: they are most of a log, and of the time to read it.
    """
    if in_brief and _TAKES not in line:
        line = _NUMBERS.sub(b"", line, count=1)
    try:
        values = json.loads(line)
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValueError("not JSON") from error
    if not isinstance(values, dict) or not {"time", "id", "outcome"} <= values.keys():
        raise ValueError("not an outcome")
    values.pop("format", None)
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in values.items():
        types = _TYPES.get(name)
        if types is None:
            extra[name] = value
        elif type(value) not in types or not _possible(name, value):
            raise ValueError(f"{name} has a wrong type, or is nothing that was ever written")
        else:
            known[name] = encodable(value) if isinstance(value, str) else value
    return OutcomeRecord(**known, extra=extra)


def _possible(name: str, value: Any) -> bool:
    """Whether a number, or each one among signals, is one that can be computed with; a time is one of the calendar."""
    if isinstance(value, dict):
        return all(_possible("", each) for each in value.values())
    if isinstance(value, int | float):
        return 0 <= value <= _LATEST if name == "time" else -_LARGEST <= value <= _LARGEST
    return True


# As JSON gives them: true is no number.
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    **{each.name: (str,) for each in fields(OutcomeRecord) if each.name != "extra"},
    **dict.fromkeys(("time", "probability", "visible_seconds"), (int, float)),
    **dict.fromkeys(("length", "accepted_length"), (int,)),
    "signals": (dict,),
    "text": (str, type(None)),
}


def _plain(name: str) -> str:
    """A name from outside, cut down to what may stand in a log."""
    return _NAME.sub("_", name)[:_LONGEST_NAME]


def _extension(uri: str) -> str:
    try:
        name = PurePosixPath(unquote(urlsplit(uri).path)).name
    except ValueError:
        return ""
    # A file may be all extension: `.netrc` has none.
    found = _EXTENSION.search(name, 1)
    return found[1].lower() if found else ""


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
