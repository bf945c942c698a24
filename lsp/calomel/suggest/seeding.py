"""Canvases that begin as a known text: what the model doubts in it is masked again, in several lengths.

The rest is frozen. A text that the model believes in everywhere gives no canvas: there is nothing to ask.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

# A token that the model thinks less likely than this is masked again.
DOUBT: Final = math.log(0.5)
# How many tokens longer a replacement is than what it replaces, the likelier ones first: names of equal length, then an
# argument more, then less.
LENGTHS: Final = (0, 2, 1, -1, 3)


@dataclass(frozen=True, slots=True)
class Seed:
    """An answer of which most is known.

    Attributes:
        length: tokens of the answer, its end not counted.
        frozen: position in the answer to the token id that it has; what is not here is to be denoised.
    """

    length: int
    frozen: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens `start:stop` of a text, all doubted; `log_prob` is that of the least likely one.

    A span that ends behind the last token doubts the end of the text too.
    """

    start: int
    stop: int
    log_prob: float


def doubted(log_probs: Sequence[float], words: Sequence[int], below: float = DOUBT) -> tuple[Span, ...]:
    """What to mask again, the most doubted first.

    Args:
        log_probs: of every token and, last, of the end behind them, each from the tokens before it.
        words: for every token what tells its word from others (such as where that begins): a word is masked as a whole.
        below: the least log-probability that counts as belief.
    """
    size = len(words)
    spans: list[Span] = []
    for place, log_prob in enumerate(log_probs):
        if log_prob >= below:
            continue
        start, stop, least = place, place + 1, log_prob
        while 0 < start < size and words[start - 1] == words[start]:
            start -= 1
        while stop < size and words[stop] == words[stop - 1]:
            stop += 1
        if spans and start <= spans[-1].stop:
            before = spans.pop()
            start, stop, least = before.start, max(stop, before.stop), min(log_prob, before.log_prob)
        spans.append(Span(start, stop, least))
    return tuple(sorted(spans, key=lambda span: span.log_prob))


def seeds(
    ids: Sequence[int], spans: Sequence[Span], lengths: Sequence[int], *, most: int, longest: int
) -> tuple[Seed, ...]:
    """At most `most` canvases for the text `ids`, the likeliest first, none longer than `longest` with its end.

    Each of `lengths` is tried on all `spans` at once, and, where there are several, on the first alone.
    """
    found: dict[tuple[int, tuple[tuple[int, int], ...]], Seed] = {}
    groups = [spans, spans[:1]] if len(spans) > 1 else [spans]
    for more in dict.fromkeys(lengths):
        for group in groups:
            seed = _seed(ids, sorted(group, key=lambda span: span.start), more)
            if seed is not None and seed.length < longest:
                found.setdefault((seed.length, tuple(seed.frozen.items())), seed)
    return tuple(found.values())[:most]


def _seed(ids: Sequence[int], spans: Sequence[Span], more: int) -> Seed | None:
    """`ids` with each span replaced by masks, `more` than it has tokens; None where nothing would be masked."""
    frozen: dict[int, int] = {}
    at = shift = masks = 0
    for span in spans:
        frozen.update({place + shift: ids[place] for place in range(at, span.start)})
        at = min(span.stop, len(ids))
        width = max(0, at - span.start + more)
        shift += width - (at - span.start)
        masks += width
    frozen.update({place + shift: ids[place] for place in range(at, len(ids))})
    length = len(ids) + shift
    # Without a mask there is still something to decide where whole words go.
    return Seed(length, frozen) if spans and (masks or len(frozen) < len(ids)) and length else None
