"""A recorded assistant's offers behind the filter."""

from __future__ import annotations

from calomel.prompts.parts import Edit
from calomel.replay.assistant import assistant_report, filtered_offers
from calomel.replay.events import Accepted, Changed, Event, Offered, Opened, ReplayLog

TEXT = "def area(width, height):\n    return width\n\n\nprint(area(2, 3))\n"
AT = TEXT.index("width\n\n")


def offered(entry: int, time: float, text: str, request: str) -> Offered:
    return Offered(entry, time, "area.py", (Edit(AT, AT + 5, text),), "assistant", request, True, time - 0.2)


async def test_what_the_filter_lets_through_and_what_of_it_was_accepted() -> None:
    events: list[Event] = [
        Opened(0, 0.0, "area.py", "python", TEXT),
        Changed(1, 1.0, "area.py", (Edit(9, 14, "breadth"),), "typed"),
        Changed(2, 2.0, "area.py", (Edit(9, 16, "width"),), "typed"),
        offered(3, 3.0, "width * height", "r1"),
        offered(4, 5.0, "<|im_end|>", "r2"),
        offered(5, 7.0, "width * height", "r3"),
        Accepted(6, 8.0, "area.py", (Edit(AT, AT + 5, "width * height"),)),
        Changed(7, 8.0, "area.py", (Edit(AT, AT + 5, "width * height"),), "accept"),
    ]
    rows = await filtered_offers(ReplayLog("made", "recording", events))
    assert [(row.taken, row.reason) for row in rows][-2:] == [(False, "prompt_marker"), (True, "")]
    report = assistant_report(rows, "balanced")
    assert (report.flat["assistant_accepted"], report.flat["assistant_lost"]) == (1, 0)
    assert report.flat["assistant_offers"] == len(rows)
