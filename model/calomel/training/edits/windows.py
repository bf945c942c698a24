"""A part of a large file that reads like a small file: consecutive top-level pieces."""

import random

from calomel.training.edits.source import Source

# Share of the larger files that are read whole all the same, so that far-away uses are met too.
WHOLE_SHARE = 0.3
# Characters. Larger files take long to read, and their uses lie further apart than a story may reach.
WHOLE_CHARACTERS = 40_000


def window(source: Source, rng: random.Random, characters: int) -> Source:
    """Return the source itself when it is small, else some of its top-level pieces, drawn, about `characters` long."""
    size = len(source.text)
    if size <= characters or (size <= WHOLE_CHARACTERS and rng.random() < WHOLE_SHARE):
        return source
    starts = [0, *(source.offset(child.start_byte) for child in source.root.children), size]
    starts = sorted({source.line_start(start) if start < size else size for start in starts})
    first = rng.randrange(len(starts) - 1)
    last = max((i for i, start in enumerate(starts) if start - starts[first] <= characters), default=first)
    # From the end of the file go back as far as fits, or the last window would be a short one.
    if last == len(starts) - 1:
        first = min(i for i, start in enumerate(starts) if size - start <= characters or i == first)
    return source.with_text(source.text[starts[first] : starts[max(last, first + 1)]])
