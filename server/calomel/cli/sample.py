"""The small files that `calomel try` fills: each has one hole, written `⟦expected text⟧` in the file itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files

from calomel.cli.errors import CommandError

# The samples do not parse because of their mark: the extension keeps compilers and linters away from them.
EXTENSION = ".hole"


@dataclass(frozen=True, slots=True)
class Sample:
    """One hole, and the text that its author wrote there; the model sees `prefix`, `suffix` and `path` alone."""

    path: str
    prefix: str
    expected: str
    suffix: str

    @classmethod
    def parse(cls, path: str, text: str) -> Sample:
        """Cut `text` at its one mark; raises CommandError when it has none or several."""
        parts = re.split(r"⟦(.*?)⟧", text, flags=re.DOTALL)
        if len(parts) != 3:  # noqa: PLR2004  (what is before, in and behind the mark)
            raise CommandError(f"{path} has {len(parts) // 2} holes marked with ⟦⟧; a sample has one")
        return cls(path, *parts)


def bundled_samples() -> tuple[Sample, ...]:
    """All samples of the package, sorted by name."""
    entries = [entry for entry in files("calomel.cli").joinpath("samples").iterdir() if entry.name.endswith(EXTENSION)]
    return tuple(
        Sample.parse(entry.name.removesuffix(EXTENSION), entry.read_text(encoding="utf-8"))
        for entry in sorted(entries, key=lambda entry: entry.name)
    )
