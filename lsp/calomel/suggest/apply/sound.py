"""Whether a merged text can be what was meant."""

from __future__ import annotations

from collections import Counter

from calomel.suggest.apply.source import Source


class Sound:
    """Judges texts that came of merging one snippet into one file."""

    def __init__(self, original: Source, snippet: Source) -> None:
        self._errors = original.errors
        self._allowed = _definitions(original) | _definitions(snippet)

    def sound(self, merged: Source) -> bool:
        """Whether it is no worse to parse than the original, and defines nothing twice that was defined once."""
        if merged.errors > self._errors:
            return False
        return all(count <= max(1, self._allowed[key]) for key, count in _definitions(merged).items())


def _definitions(source: Source) -> Counter[tuple[str, ...]]:
    """How often each definition is there, by the definitions around it and its name."""
    found: Counter[tuple[str, ...]] = Counter()
    for line, name in source.names.items():
        if source.ends[line] > line + 1:
            path = (source.identity(head) for head in source.path(line) if head in source.names)
            found[*path, name] += 1
    return found
