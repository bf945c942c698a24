"""What all filters together cost on a long file; `pytest -s` prints it."""

from __future__ import annotations

import random
import time
from itertools import accumulate
from pathlib import Path

from calomel.selectivity.filters import QUICK, fired
from calomel.selectivity.proposal import Edit, Proposal, Recent
from calomel.workspace.secrets import mask

SOURCES = Path(__file__).parents[2] / "lsp" / "calomel"
LINES = 3000
PROPOSALS = 200
# Milliseconds of processor time; a machine for tests is slower than the one of a user, and busy.
ALLOWED = 3.0


def proposals(lines: int) -> list[Proposal]:
    """Holes of a few lines and of half a line, and small edits of a region, all over a long file."""
    source = [line for path in sorted(SOURCES.rglob("*.py")) for line in path.read_text(encoding="utf-8").split("\n")]
    while len(source) < lines:
        source += source
    rows = source[:lines]
    text = "\n".join(rows)
    starts = list(accumulate((len(line) + 1 for line in rows), initial=0))
    drawn = random.Random(0)
    made: list[Proposal] = []
    while len(made) < PROPOSALS:
        row = drawn.randrange(10, lines - 10)
        if len(rows[row].strip()) < 8:
            continue
        start = starts[row] + drawn.randrange(len(rows[row]) - 2)
        end = starts[row + drawn.choice((1, 1, 2, 4))] - 1
        typed = Recent(start - 2, start, "", text[start - 2 : start])
        if drawn.random() < 0.5:
            now = text[:start] + text[end:]
            edits, kind, region = (Edit(start, start, text[start:end]),), "fill", None
        else:
            now = text
            edits, kind = (Edit(start, end, text[start:end].replace("e", "ee")),), "edit"
            region = (text.rfind("\n", 0, start) + 1, text.find("\n", end) + 1)
        made.append(
            Proposal(
                kind="fill" if kind == "fill" else "edit",
                text=now,
                edits=edits,
                cursor=start,
                language_id="python",
                region=region,
                recent=(typed,) * 8,
                masked=mask(now),
                mask=mask,
            )
        )
    return made


def milliseconds(made: list[Proposal]) -> list[float]:
    """Of processor time for each, ascending."""
    taken = []
    for proposal in made:
        began = time.process_time()
        list(fired(proposal, QUICK))
        taken.append((time.process_time() - began) * 1000)
    return sorted(taken)


def test_all_filters_that_do_not_parse_are_quick_on_a_long_file() -> None:
    taken = milliseconds(proposals(LINES))
    median, high = taken[len(taken) // 2], taken[len(taken) * 99 // 100]
    print(f"all but the one that parses, {LINES} lines: median {median:.2f} ms, 99th percentile {high:.2f} ms")  # noqa: T201 (asked for by -s)
    assert median <= ALLOWED


def test_a_file_ten_times_as_long_does_not_cost_ten_times_as_much() -> None:
    short, long = (milliseconds(proposals(lines))[PROPOSALS // 2] for lines in (LINES // 3, LINES * 3))
    assert long <= 3 * short
