"""Whether a merged text can be what was meant."""

from __future__ import annotations

from collections import Counter

from calomel.suggest.apply.grammars import error_count, parse
from calomel.suggest.apply.source import Source
from calomel.workspace.languages import Grammar


class Sound:
    """Judges texts that came of merging one snippet into one file."""

    def __init__(self, original: Source, snippet: Source, grammar: Grammar | None) -> None:
        self._grammar = grammar
        self._errors = self._count("".join(original.lines))
        self._allowed = _definitions(original) | _definitions(snippet)

    def sound(self, merged: Source) -> bool:
        """Whether it is no worse to parse than the original, and defines nothing twice that was defined once."""
        if self._grammar is not None and self._count("".join(merged.lines)) > self._errors:
            return False
        return all(count <= max(1, self._allowed[key]) for key, count in _definitions(merged).items())

    def _count(self, text: str) -> int:
        tree = parse(text, self._grammar)
        return 0 if tree is None else error_count(tree)


def _definitions(source: Source) -> Counter[tuple[str, ...]]:
    """How often each definition is there, by the definitions around it and its name."""
    found: Counter[tuple[str, ...]] = Counter()
    for line, name in source.names.items():
        if source.ends[line] > line + 1:
            path = (source.identity(head) for head in source.path(line) if head in source.names)
            found[*path, source.identity(line), name] += 1
    return found
