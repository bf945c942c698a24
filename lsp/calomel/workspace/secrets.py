"""Finds what looks like a secret in source code, fast enough for every keystroke.

Most of a text is the same as a moment ago, so what is known about a line is cached; only new lines are searched,
together, and blocks of several lines are assembled from what their lines may be.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import accumulate
from typing import Final

from calomel.code.budget import Budget
from calomel.workspace.secret_patterns import (
    PATTERNS,
    find_below,
    find_phrases,
    find_shapes,
    find_unannounced,
    find_values,
)

# Two lines of one length may be two hashes; three are a block.
_FEWEST_LINES: Final = 3
_LONGEST_BLOCK: Final = 400
# `-----END PRIVATE KEY-----` has 25 characters.
SHORTEST_MARKED: Final = 25


class Mark(Enum):
    """The role that one line may have in a block."""

    BEGIN = "begin"
    END = "end"
    BOTH = "both"
    BODY = "body"
    # About a value below the line, other than a private key.
    KEY = "key"
    PASSWORD = "password"  # noqa: S105 (a kind, no value)
    SECRET = "secret"  # noqa: S105 (a kind, no value)
    PHRASE = "phrase"


def mark(line: str) -> Mark | None:
    """The role that the line may have in a block, seen alone."""
    if "-----" in line:
        begins, ends = PATTERNS["begin"].search(line), PATTERNS["end"].search(line)
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
    spans: list[tuple[int, int, int]] = []
    bodies: list[int] = []
    done = -1
    for number, kind in marks:
        if kind is Mark.BODY:
            bodies.append(number)
        if number <= done:
            continue
        if kind is Mark.BOTH:
            spans += _within(lines[number], number)
        elif kind is Mark.BEGIN:
            begin = PATTERNS["begin"].search(lines[number])
            start = 0 if begin is None else begin.start()
            spans.append((number, start, len(lines[number].rstrip("\r"))))
            done = _down(lines, number + 1, spans)
        elif kind is Mark.END:
            _up(lines, number, done, spans)
    return spans + _runs(lines, bodies)


def _within(line: str, number: int) -> list[tuple[int, int, int]]:
    spans = []
    begin = PATTERNS["begin"].search(line)
    while begin is not None:
        end = PATTERNS["end"].search(line, begin.end())
        stop = len(line) if end is None else end.end()
        spans.append((number, begin.start(), stop))
        begin = PATTERNS["begin"].search(line, stop)
    return spans


def _down(lines: Sequence[str], first: int, spans: list[tuple[int, int, int]]) -> int:
    """Add what follows the line that begins a block; returns its last line."""
    for number in range(first, min(len(lines), first + _LONGEST_BLOCK)):
        line = lines[number]
        end = PATTERNS["end"].search(line)
        if end is not None:
            spans.append((number, _indent(line), end.end()))
            return number
        inside = PATTERNS["inside"].fullmatch(line)
        if inside is not None:
            spans.append((number, *inside.span("secret")))
        elif not PATTERNS["between"].fullmatch(line):
            return number - 1
    return min(len(lines), first + _LONGEST_BLOCK) - 1


def _up(lines: Sequence[str], last: int, done: int, spans: list[tuple[int, int, int]]) -> None:
    """Add the line that ends a block without a beginning, and the lines above it."""
    end = PATTERNS["end"].search(lines[last])
    spans.append((last, 0, len(lines[last]) if end is None else end.end()))
    for number in range(last - 1, max(done, last - _LONGEST_BLOCK), -1):
        inside = PATTERNS["inside"].fullmatch(lines[number])
        if inside is None or PATTERNS["begin"].search(lines[number]):
            return
        spans.append((number, *inside.span("secret")))


def _runs(lines: Sequence[str], bodies: Sequence[int]) -> list[tuple[int, int, int]]:
    """The middle of a block that lost both ends: some full lines, and the shorter one below them."""
    spans: list[tuple[int, int, int]] = []
    run: list[int] = []
    for number in [*bodies, -2]:
        if run and (number != run[-1] + 1 or _width(lines[number]) > _width(lines[run[0]])):
            if len(run) >= _FEWEST_LINES:
                spans += [(each, *_secret(lines[each])) for each in run]
                below = run[-1] + 1
                inside = PATTERNS["inside"].fullmatch(lines[below]) if below < len(lines) else None
                if inside is not None:
                    spans.append((below, *inside.span("secret")))
            run = []
        if number >= 0:
            run.append(number)
    return spans


def _is_body(line: str) -> bool:
    match = PATTERNS["body"].fullmatch(line)
    if match is None:
        return False
    body = match["secret"]
    return not PATTERNS["hex"].fullmatch(body) and not body.isalpha() and not body.islower() and not body.isupper()


def _secret(line: str) -> tuple[int, int]:
    match = PATTERNS["body"].fullmatch(line)
    return (0, len(line)) if match is None else match.span("secret")


def _width(line: str) -> int:
    start, end = _secret(line)
    return end - start


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


Span = tuple[int, int, str]
# What is known about a line: its own secrets, and its role in a block.
_LineSecrets = tuple[tuple[Span, ...], Mark | None]

_ANNOUNCED: Final = frozenset({Mark.KEY, Mark.PASSWORD, Mark.SECRET, Mark.PHRASE})
_CLEAN: Final[_LineSecrets] = ((), None)
_MASK: Final = "*"
# About four large files; a line is kept once however often it occurs.
_KEPT_LINES: Final = 16_000
# A longer line is not source code, and would fill the memory.
_LONGEST_KEPT: Final = 2_000
# Ten times what ordinary text takes. Behind the place where it is spent, a piece of text is hidden whole.
_SECONDS: Final = 0.02
_SECONDS_A_CHARACTER: Final = 1e-6
# Characters searched at once: more would delay the other threads too long.
_PIECE: Final = 24_576
# Characters split into lines at once, for the same reason. The result for an unchanged part is cached.
_CHUNK: Final = 32_768
_KEPT_CHUNKS: Final = 128
# No secret is longer, including what announces it.
_OVERLAP: Final = 6_144
# A shorter value may be a word, too.
SHORTEST_REPEATED: Final = 16
_MOST_REPEATED: Final = 64
# The same text is requested several times between two keystrokes.
_KEPT_TEXTS: Final = 8
_KEPT_CHARACTERS: Final = 2_000_000


class SecretFinder:
    """Finds secrets, and caches what it has seen. May be used from several threads.

    Args:
        pause: called after each piece of a long text, to let other threads run.
    """

    def __init__(self, pause: Callable[[], None] | None = None) -> None:
        self._pause = pause or (lambda: None)
        self._lines: dict[str, _LineSecrets] = {}
        # How many lines a part of a text has, and what is known about them.
        self._parts: dict[str, tuple[int, list[tuple[int, _LineSecrets]]]] = {}
        self._texts: OrderedDict[str, tuple[Span, ...]] = OrderedDict()

    def spans(self, text: str) -> tuple[Span, ...]:
        """The secrets in `text` as (start, end, kind), ascending and disjoint; none spans a line end."""
        spans = self._texts.get(text)
        if spans is None:
            spans = self._find(text)
            if len(text) <= _KEPT_CHARACTERS:
                self._texts[text] = spans
                while len(self._texts) > _KEPT_TEXTS or sum(map(len, list(self._texts))) > _KEPT_CHARACTERS:
                    try:
                        self._texts.popitem(last=False)
                    except KeyError:  # another thread was faster
                        break
        return spans

    def values(self, text: str) -> frozenset[str]:
        """The secrets in `text` that are long enough to be told from words anywhere else."""
        found = (text[start:end] for start, end, _ in self.spans(text))
        return frozenset(value for value in found if len(value) >= SHORTEST_REPEATED)

    def part_spans(self, text: str) -> tuple[tuple[int, int], ...]:
        """The same without kinds for a part of an unknown text: what announces its first lines may stand above them."""
        lines = text.replace("\r", "\n").split("\n")
        spans = list(self.spans(text))
        unannounced = find_unannounced(lines)
        if unannounced:
            starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
            spans += [(starts[number] + start, starts[number] + end, "key") for number, start, end in unannounced]
        return tuple((start, end) for start, end, _ in joined(spans))

    def _find(self, text: str) -> tuple[Span, ...]:
        text = text.replace("\r", "\n") if "\r" in text else text
        rows = 0
        results: list[tuple[int, _LineSecrets]] = []
        for chunk in _chunks(text):
            part = self._parts.get(chunk)
            if part is None:
                part = chunk.count("\n") + 1, self._known(chunk.split("\n"))
                if len(self._parts) >= _KEPT_CHUNKS:
                    self._parts.clear()
                if len(chunk) <= _CHUNK:
                    self._parts[chunk] = part
            results += [(rows + number, each) for number, each in part[1]]
            rows += part[0]
        if not results:
            return ()
        lines = text.split("\n")
        starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
        spans = [
            (starts[number] + start, starts[number] + end, kind)
            for number, (secrets, _) in results
            for start, end, kind in secrets
        ]
        marks = [(number, at) for number, (_, at) in results if at is not None]
        if marks:
            announced = [(number, at.value) for number, at in marks if at in _ANNOUNCED]
            for kind, parts in (("private_key", find_blocks(lines, marks)), ("key", find_below(lines, announced))):
                spans += [(starts[number] + start, starts[number] + end, kind) for number, start, end in parts]
        return joined(spans + list(_again(text, spans)))

    def _known(self, lines: list[str]) -> list[tuple[int, _LineSecrets]]:
        """What is known about those lines that are not clean."""
        cache = self._lines
        each = list(map(cache.get, lines))
        if each.count(_CLEAN) == len(each):
            return []
        notable = [(number, value) for number, value in enumerate(each) if value is not _CLEAN]
        unknown = dict.fromkeys(lines[number] for number, value in notable if value is None)
        budget = Budget(_SECONDS + _SECONDS_A_CHARACTER * sum(map(len, unknown)))
        learned = budget.run(learn, unknown, self._pause)
        if len(cache) + len(learned) > _KEPT_LINES:
            cache.clear()
        cache.update((line, value) for line, value in learned.items() if len(line) <= _LONGEST_KEPT)
        whole = ((number, learned[lines[number]] if value is None else value) for number, value in notable)
        return [(number, value) for number, value in whole if value is not _CLEAN]


# Shared, so that what is known about lines is kept.
FINDER: Final = SecretFinder()
spans = FINDER.spans


def masked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text with every character of these spans (in order, disjoint) replaced by an asterisk."""
    if not spans:
        return text
    parts = []
    at = 0
    for start, end in spans:
        parts += [text[at:start], _MASK * (end - start)]
        at = end
    return "".join([*parts, text[at:]])


# Characters before a text on its line that say what it is, such as `password = `.
_NAMED_WITHIN: Final = 400


def writes_secret(text: str, edits: Iterable[tuple[int, int, str]], known: Iterable[str]) -> bool:
    """Whether an edit of a text writes a secret somewhere new: a known one, or what its line makes one."""
    for start, _, new in edits:
        if not new.strip():
            continue
        before = text[max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1 : start][-_NAMED_WITHIN:]
        if any(end > len(before) for _, end, _ in spans(before + new)) or any(value in new for value in known):
            return True
    return False


def _again(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """Where else a generated value stands: what is a secret in one place is one in every other."""
    values = {text[start:end]: kind for start, end, kind in spans if end - start >= SHORTEST_REPEATED}
    for value, kind in [*values.items()][:_MOST_REPEATED]:
        at = text.find(value)
        while at >= 0:
            yield at, at + len(value), kind
            at = text.find(value, at + len(value))


def joined(parts: list[Span]) -> tuple[Span, ...]:
    """Spans in order, overlapping and touching ones joined; the first kind names them."""
    spans: list[Span] = []
    for start, end, kind in sorted(parts):
        if spans and start <= spans[-1][1]:
            if end > spans[-1][1]:
                spans[-1] = (spans[-1][0], end, spans[-1][2])
        elif end > start:
            spans.append((start, end, kind))
    return tuple(spans)


def learn(lines: Iterable[str], pause: Callable[[], None] = lambda: None) -> dict[str, _LineSecrets]:
    """What is known about lines, each seen alone; `pause` is called after every piece but the last."""
    results: dict[str, _LineSecrets] = {}
    batch: list[str] = []
    size = 0
    for line in lines:
        if len(line) > _PIECE:
            results[line] = _learn_long(line, pause)
            continue
        if size + len(line) > _PIECE:
            results.update(_learn(batch))
            batch, size = [], 0
            pause()
        batch.append(line)
        size += len(line)
    return results | _learn(batch)


def _learn_long(line: str, pause: Callable[[], None]) -> _LineSecrets:
    """Like `learn`, for one line in pieces: an edge may cut a secret, which the next piece has whole."""
    spans: list[Span] = []
    for start in range(0, len(line), _PIECE - _OVERLAP):
        piece = line[start : start + _PIECE]
        own, at = _learn([piece])[piece]
        blocks = () if at is None else find_blocks([piece], [(0, at)])
        spans += [(start + first, start + end, kind) for first, end, kind in own]
        spans += [(start + first, start + end, "private_key") for _, first, end in blocks]
        pause()
    # Nothing continues after the end of such a line.
    return joined(spans), None


def _chunks(text: str) -> Iterator[str]:
    """The text in parts that end at a line end, without that line end."""
    at = 0
    while len(text) - at > _CHUNK:
        end = text.rfind("\n", at, at + _CHUNK)
        end = text.find("\n", at + _CHUNK) if end < 0 else end
        if end < 0:
            break
        yield text[at:end]
        at = end + 1
    yield text[at:]


def _learn(lines: list[str]) -> dict[str, _LineSecrets]:
    results = dict.fromkeys(lines, _CLEAN)
    text = "\n".join(lines)
    lower = text.replace("\u0130", "I").lower()  # the only letter whose lower case has another length
    spans = [*find_shapes(text), *find_phrases(text, lower), *find_values(text, lower)]
    own: dict[int, list[Span]] = {}
    announced: dict[int, Mark] = {}
    if spans:
        starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
        for start, end, kind in spans:
            number = bisect_right(starts, start) - 1
            if start == end:
                announced[number] = Mark(kind)
            else:
                own.setdefault(number, []).append((start - starts[number], end - starts[number], kind))
    for number in own.keys() | announced.keys():
        results[lines[number]] = (joined(own.get(number, [])), announced.get(number))
    for line in lines:
        if len(line) >= SHORTEST_MARKED and (at := mark(line)):
            results[line] = (results[line][0], at)
    return results
