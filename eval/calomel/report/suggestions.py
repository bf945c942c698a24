"""Every suggestion of a replay as the page's script reads it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from calomel.replay.opportunity import LogResult, Opportunity


def suggestions(results: Sequence[LogResult]) -> list[dict[str, Any]]:
    """Ours, then the recorded assistants', log by log in the order of time; those that were held back, too."""
    return [
        _row(item, recorded=recorded)
        for result in results
        for recorded, items in ((False, result.opportunities), (True, result.recorded))
        for item in items
        if item.candidate is not None
    ]


def as_data_block(value: object) -> str:
    """JSON that cannot end the element it stands in, whatever the texts hold."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _row(item: Opportunity, *, recorded: bool) -> dict[str, Any]:
    return {key: value for key, value in _fields(item, recorded=recorded) if value is not None}


def _fields(item: Opportunity, *, recorded: bool) -> Iterator[tuple[str, Any]]:
    found = item.candidate
    if found is None:
        return
    yield "log", item.log
    yield "entry", item.entry
    yield "time", round(item.time, 3)
    yield "path", item.path
    yield "kind", item.kind
    yield "shown", item.shown
    yield "reason", item.silence
    yield "latency", round(item.latency_ms, 1)
    yield "source", found.source
    yield "recorded", recorded or None
    yield "real", item.real_outcome or None
    yield "outcome", found.outcome
    yield "confidence", round(found.confidence, 4) if math.isfinite(found.confidence) else None
    yield "saved", found.saved_characters
    yield "kept", found.kept
    yield "visible", round(found.visible_seconds, 2)
    yield "before", found.before
    yield "after", found.after
    yield "expected", found.expected
    numbers = {name: round(value, 4) for name, value in sorted(found.signals.items()) if math.isfinite(value)}
    yield "signals", numbers or None
