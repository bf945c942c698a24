"""Recorded answers of the hosted Mercury edit endpoint: NDJSON of requests and responses, bodies in base64.

The request marks the cursor and the editable region in the document; the answer is that region's new text in a code
fence, or `None`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from calomel.bench.cases import Case, SuiteError
from calomel.bench.suite_score import Reply

_FILE: Final = re.compile(
    r"<\|current_file_content\|>\ncurrent_file_path: [^\n]*\n(.*)<\|/current_file_content\|>", re.DOTALL
)
_OPEN, _CLOSE, _CURSOR = "<|code_to_edit|>\n", "\n<|/code_to_edit|>", "<|cursor|>"
_FENCE: Final = re.compile(r"\s*```[^\n]*\n(.*?)\n?```\s*", re.DOTALL)
_OK: Final = 200


@dataclass(frozen=True, slots=True)
class Exchange:
    """One recorded question and its answer.

    Attributes:
        text: the document that the request shows.
        offset: of the cursor in it.
        after: the document with the answer; None when the answer is no edit.
        latency_ms: as recorded.
    """

    text: str
    offset: int
    after: str | None
    latency_ms: float | None


def read_exchanges(file: Path) -> tuple[Exchange, ...]:
    """All of a recording, in order. Raises SuiteError."""
    requests: dict[int, Any] = {}
    found = []
    try:
        for line in file.read_text(encoding="utf-8").splitlines():
            record = json.loads(line) if line.strip() else {}
            if record.get("kind") not in {"request", "response"}:
                continue
            body = json.loads(base64.b64decode(record["body_b64"], validate=True))
            number = record["interaction"]
            if record["kind"] == "request":
                requests[number] = body
            else:
                found.append(_exchange(requests.pop(number), body, record))
    except (OSError, UnicodeDecodeError, binascii.Error, ValueError, KeyError, TypeError, IndexError) as error:
        raise SuiteError(f"{file.name} is no recording of an edit endpoint: {error!r}") from error
    return tuple(found)


def replies_to(case: Case, exchanges: tuple[Exchange, ...]) -> tuple[Reply, ...]:
    """What was recorded for a case: nothing, unless the first request has its text and its cursor.

    Later requests of a scenario show the text after accepting a part of the first answer; they count as they stand.
    """
    if not exchanges or exchanges[0].offset != case.offset or exchanges[0].text.rstrip() != case.text.rstrip():
        return ()
    return tuple(Reply(each.after, "no_edit" if each.after is None else None, each.latency_ms) for each in exchanges)


def _exchange(request: Any, response: Any, record: Any) -> Exchange:
    if record["status"] != _OK:
        raise ValueError(f"status {record['status']}")
    content = request["messages"][0]["content"]
    match = _FILE.search(content)
    if match is None:
        raise ValueError("the request has no current_file_content")
    marked = match[1].removesuffix("\n")
    offset = marked.index(_CURSOR) - (len(_OPEN) if _OPEN in marked[: marked.index(_CURSOR)] else 0)
    before, rest = marked.replace(_CURSOR, "").split(_OPEN)
    region, after = rest.split(_CLOSE)
    new = region_of_answer(response["choices"][0]["message"]["content"])
    return Exchange(
        text=before + region + after,
        offset=offset,
        after=None if new is None or new == region else before + new + after,
        latency_ms=record.get("duration_ms"),
    )


def region_of_answer(content: str) -> str | None:
    """The new text of the region; None for an answer that says that there is no edit."""
    match = _FENCE.fullmatch(content)
    text = match[1] if match else content
    return None if text.strip() in {"", "None"} else text
