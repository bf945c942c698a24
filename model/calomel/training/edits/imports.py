"""One more import, where the file keeps its imports."""

from __future__ import annotations

import re
from typing import Final

from calomel.training.edits.source import Source
from calomel.training.edits.story import Change

_BLOCK: Final = re.compile(r'^import \(\n((?:[ \t]+(?:[\w.]+ )?"[^"\n]+"\n)+)', re.MULTILINE)


def imported(source: Source, module: str) -> Change | None:
    """A line that imports a module of the standard library (Python, Go); None where it is there, or no place fits."""
    if source.language == "go":
        block = _BLOCK.search(source.text)
        if block is None or f'"{module}"\n' in block[1]:
            return None
        lines = block[1].splitlines(keepends=True)
        at = block.start(1)
        for line in lines:
            named = line.split('"')[1]
            if named > module or "." in named.split("/")[0]:
                break
            at += len(line)
        indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
        return Change(at, at, f'{indent}"{module}"\n')
    if re.search(rf"^import {module}$", source.text, re.MULTILINE):
        return None
    plain = list(re.finditer(r"^import (\w[\w.]*)\n", source.text, re.MULTILINE))
    if not plain:
        return None
    behind = [match for match in plain if match[1] > module]
    at = behind[0].start() if behind else plain[-1].end()
    return Change(at, at, f"import {module}\n")
