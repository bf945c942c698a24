"""Why a change of a recording was made: the recorder writes it down after the change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from calomel.replay.causes import REASONS
from calomel.replay.events import Cause

SOURCE: Final = "TextModel.setChangeReason"


class Reasons(dict[int, Cause]):
    """Causes by the entry of their change; also which reasons found one."""

    def __init__(self) -> None:
        super().__init__()
        self._found: set[tuple[object, object]] = set()

    def add(self, entry: int, values: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """Keep a reason that was found for a change."""
        self[entry] = REASONS.get(str(data.get("source")), "other")
        self._found.add(_key(values, data))

    def has(self, values: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
        """Whether a change was found for a reason."""
        return _key(values, data) in self._found


def reasons_of(entries: Sequence[Any]) -> Reasons:
    """The recorder writes a change's reason down after the change: it names the document and the version."""
    found = Reasons()
    last: dict[tuple[object, object], int] = {}
    for entry, values in enumerate(entries):
        if not isinstance(values, dict):
            continue
        if values.get("kind") == "changed":
            last[_key(values, values)] = entry
        elif values.get("kind") == "documentEvent":
            data = values.get("data")
            if isinstance(data, dict) and data.get("sourceId") == SOURCE:
                change = last.get(_key(values, data))
                if change is not None:
                    found.add(change, values, data)
    return found


def _key(values: Mapping[str, Any], versioned: Mapping[str, Any]) -> tuple[object, object]:
    number, version = values.get("id"), versioned.get("v")
    return (number if type(number) is int else None, version if type(version) is int else None)
