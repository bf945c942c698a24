"""Recordings with candidate edits that people scored: `recording.w.json` beside `scoredEdits.w.json`.

The score of an edit is that of the equal candidate: 1 for the right next edit, 0.1 for a valid one, 0 for a bad one, as
the recordings' own tool counts them; an edit that nobody scored has none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import unquote

from calomel.replay.events import Changed, Edit, LogError, Opened, ReplayLog, apply_edits
from calomel.replay.log_file import parse_object, read_text
from calomel.replay.recorded_document import edits_of
from calomel.replay.recording import read_recording
from calomel.replay.units import code_point_edits

Category = Literal["nextEdit", "valid", "bad"]
SCORES: Final[dict[str, float]] = {"nextEdit": 1.0, "valid": 0.1, "bad": 0.0}
RECORDING, SCORED = "recording.w.json", "scoredEdits.w.json"


@dataclass(frozen=True, slots=True)
class ScoredEdit:
    """One candidate.

    Attributes:
        edits: what it changes, in code points of the document's last text; None: nothing, silence.
        category: what the people said of it.
    """

    edits: tuple[Edit, ...] | None
    category: Category


@dataclass(frozen=True, slots=True)
class ScoredRecording:
    """A recording that ends where the next edit is asked for.

    Attributes:
        log: of the recording.
        document: that the candidates are for.
        text: of it, at the end of the recording.
        candidates: all that were scored.
    """

    log: ReplayLog
    document: str
    text: str
    candidates: tuple[ScoredEdit, ...]

    def score(self, edits: Sequence[Edit] | None) -> float | None:
        """The score of an edit, None when nobody scored it.

        Args:
            edits: in code points of `text`; None or none: silence.
        """
        wanted = normalized(self.text, edits)
        found = [SCORES[each.category] for each in self.candidates if normalized(self.text, each.edits) == wanted]
        return max(found, default=None)


def normalized(text: str, edits: Sequence[Edit] | None) -> tuple[Edit, ...] | None:
    """Edits without what they leave as it is, at their ends; None for those that change nothing."""
    found = tuple(edit for each in edits or () if (edit := _trimmed(text, each)) is not None)
    return found or None


def read_scored(folder: Path) -> ScoredRecording:
    """A scored recording. Raises LogError when one of its files cannot be read."""
    recording = parse_object(read_text(folder / RECORDING).text, "log")
    scored = parse_object(read_text(folder / SCORED).text, "edits")
    entries = recording.values.get("log") if recording else None
    rows = scored.values.get("edits") if scored else None
    if recording is None or not isinstance(entries, list) or not isinstance(rows, list):
        raise LogError(f"{folder} holds no scored recording: `log` or `edits` is missing.")
    log = read_recording(folder.name, entries, recording.values.get("nextUserEdit"))
    texts: dict[str, str] = {}
    for event in log.events:
        if isinstance(event, Opened):
            texts[event.document] = event.text
        elif isinstance(event, Changed):
            texts[event.document] = apply_edits(texts[event.document], event.edits)
    try:
        document = _document(rows, texts)
        return ScoredRecording(log, document, texts[document], _candidates(rows, document, texts[document]))
    except (KeyError, TypeError, ValueError) as error:
        raise LogError(f"{folder / SCORED} cannot be read: {error}.") from error


def _document(rows: Sequence[Any], texts: dict[str, str]) -> str:
    """The document most candidates are for."""
    counts = dict.fromkeys(texts, 0)
    for row in rows:
        for path in texts:
            counts[path] += _names(row, path)
    if not counts:
        raise ValueError("the recording has no text")
    return max(counts, key=lambda path: counts[path])


def _candidates(rows: Sequence[Any], document: str, text: str) -> tuple[ScoredEdit, ...]:
    found: list[ScoredEdit] = []
    for row in rows:
        if row["scoreCategory"] not in SCORES:
            raise ValueError(f"an edit is {json.dumps(row['scoreCategory'])}, none of {', '.join(SCORES)}")
        if _names(row, document):
            edits = None if row["edit"] is None else code_point_edits(text, edits_of(row["edit"]))
            found.append(ScoredEdit(edits, row["scoreCategory"]))
    return tuple(found)


def _names(row: Any, path: str) -> bool:
    return unquote(str(row["documentUri"])).replace("\\", "/").endswith(f"/{path}")


def _trimmed(text: str, edit: Edit) -> Edit | None:
    old, new = text[edit.start : edit.end], edit.text
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if head == len(old) == len(new):
        return None
    return Edit(edit.start + head, edit.end - tail, new[head : len(new) - tail])
