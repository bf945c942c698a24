"""Whether a merged text can be what was meant."""

from __future__ import annotations

from collections import Counter

from calomel.suggest.apply.grammars import dialects
from calomel.suggest.apply.source import Source, read_source
from calomel.workspace.languages import Grammar


class Sound:
    """Judges texts that came of merging one snippet into one file.

    Args:
        original: the file.
        snippet: what should become of it.
        grammar: of both, if known.

    Attributes:
        broken: how many texts so far had more syntax errors than the file.
    """

    def __init__(self, original: Source, snippet: Source, grammar: Grammar | None) -> None:
        self._original = original
        self._grammar = grammar
        self._allowed = _definitions(original) | _definitions(snippet)
        self.broken = 0

    def sound(self, text: str) -> bool:
        """Whether it is no worse to parse than the original, and defines nothing twice that was defined once."""
        merged = read_source(text, self._grammar)
        if merged.errors > self._original.errors and not self._other_dialect(text):
            self.broken += 1
            return False
        return all(count <= max(1, self._allowed[key]) for key, count in _definitions(merged).items())

    def _other_dialect(self, text: str) -> bool:
        """Whether another grammar than the one that the file alone suggested reads it."""
        return any(not read_source(text, grammar).errors for grammar in dialects(self._grammar))


def _definitions(source: Source) -> Counter[tuple[str, ...]]:
    """How often each definition is there, by the definitions around it and its name."""
    found: Counter[tuple[str, ...]] = Counter()
    for line, name in source.names.items():
        if source.ends[line] > line + 1:
            path = (source.identity(head) for head in source.path(line) if head in source.names)
            found[*path, name] += 1
    return found
