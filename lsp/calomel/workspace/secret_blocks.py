"""Private keys that go over lines: whole blocks, and what is left of one when an excerpt cuts it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import Final

_BEGIN: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# A line of base64 as programs write it: 64 characters in PEM, 70 in OpenSSH, 76 in MIME; in code with quotes around it,
# in comments behind their sign.
_EDGES: Final = r"[ \t]*+(?:[#*>|+/-]+[ \t]*+)?[\"'`(]*+"
_REST: Final = r"(?:\\[nr])*+[\"'`)]*+[ \t]*+[+,;.\\]*+[ \t]*+\r?"
_BODY: Final = re.compile(rf"{_EDGES}(?P<secret>[A-Za-z0-9+/]{{48,}}={{0,2}}){_REST}")
_INSIDE: Final = re.compile(rf"{_EDGES}(?P<secret>[A-Za-z0-9+/=]+){_REST}")
_BETWEEN: Final = re.compile(rf"{_EDGES}(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash):.*)?{_REST}")
_HEX: Final = re.compile(r"[0-9a-fA-F]+")
# Two lines of one length may be two hashes; three are a block.
_FEWEST_LINES: Final = 3
_LONGEST_BLOCK: Final = 400
# `-----END PRIVATE KEY-----` has 25 characters.
SHORTEST_MARKED: Final = 25


class Mark(Enum):
    """What one line may be of a block."""

    BEGIN = "begin"
    END = "end"
    BOTH = "both"
    BODY = "body"


def mark(line: str) -> Mark | None:
    """What the line may be of a block, seen alone."""
    if "-----" in line:
        begins, ends = _BEGIN.search(line), _END.search(line)
        if begins and ends and ends.start() > begins.start():
            return Mark.BOTH
        if begins or ends:
            return Mark.BEGIN if begins else Mark.END
    if _is_body(line):
        return Mark.BODY
    return None


def find_blocks(lines: Sequence[str], marks: Sequence[tuple[int, Mark]]) -> list[tuple[int, int, int]]:
    """The parts of lines that belong to private keys, as (line, start, end).

    Args:
        lines: of the text, without their ends.
        marks: of the lines that have one, ascending.
    """
    found: list[tuple[int, int, int]] = []
    bodies: list[int] = []
    done = -1
    for number, kind in marks:
        if kind is Mark.BODY:
            bodies.append(number)
        if number <= done:
            continue
        if kind is Mark.BOTH:
            found += _within(lines[number], number)
        elif kind is Mark.BEGIN:
            begin = _BEGIN.search(lines[number])
            start = 0 if begin is None else begin.start()
            found.append((number, start, len(lines[number].rstrip("\r"))))
            done = _down(lines, number + 1, found)
        elif kind is Mark.END:
            _up(lines, number, done, found)
    return found + _runs(lines, bodies)


def _within(line: str, number: int) -> list[tuple[int, int, int]]:
    found = []
    begin = _BEGIN.search(line)
    while begin is not None:
        end = _END.search(line, begin.end())
        stop = len(line) if end is None else end.end()
        found.append((number, begin.start(), stop))
        begin = _BEGIN.search(line, stop)
    return found


def _down(lines: Sequence[str], first: int, found: list[tuple[int, int, int]]) -> int:
    """Add what follows the line that begins a block; the last line of it."""
    for number in range(first, min(len(lines), first + _LONGEST_BLOCK)):
        line = lines[number]
        end = _END.search(line)
        if end is not None:
            found.append((number, _indent(line), end.end()))
            return number
        inside = _INSIDE.fullmatch(line)
        if inside is not None:
            found.append((number, *inside.span("secret")))
        elif not _BETWEEN.fullmatch(line):
            return number - 1
    return min(len(lines), first + _LONGEST_BLOCK) - 1


def _up(lines: Sequence[str], last: int, done: int, found: list[tuple[int, int, int]]) -> None:
    """Add the line that ends a block whose beginning is not there, and what stands above it."""
    end = _END.search(lines[last])
    found.append((last, 0, len(lines[last]) if end is None else end.end()))
    for number in range(last - 1, max(done, last - _LONGEST_BLOCK), -1):
        inside = _INSIDE.fullmatch(lines[number])
        if inside is None or _BEGIN.search(lines[number]):
            return
        found.append((number, *inside.span("secret")))


def _runs(lines: Sequence[str], bodies: Sequence[int]) -> list[tuple[int, int, int]]:
    """The middle of a block that lost both ends: some full lines, and the shorter one below them."""
    found: list[tuple[int, int, int]] = []
    run: list[int] = []
    for number in [*bodies, -2]:
        if run and (number != run[-1] + 1 or _width(lines[number]) > _width(lines[run[0]])):
            if len(run) >= _FEWEST_LINES:
                found += [(each, *_secret(lines[each])) for each in run]
                below = run[-1] + 1
                inside = _INSIDE.fullmatch(lines[below]) if below < len(lines) else None
                if inside is not None:
                    found.append((below, *inside.span("secret")))
            run = []
        if number >= 0:
            run.append(number)
    return found


def _is_body(line: str) -> bool:
    found = _BODY.fullmatch(line)
    if found is None:
        return False
    body = found["secret"]
    return not _HEX.fullmatch(body) and not body.isalpha() and not body.islower() and not body.isupper()


def _secret(line: str) -> tuple[int, int]:
    found = _BODY.fullmatch(line)
    return (0, len(line)) if found is None else found.span("secret")


def _width(line: str) -> int:
    start, end = _secret(line)
    return end - start


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
