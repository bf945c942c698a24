"""The tables that pages quote: words from `tables.toml` in a folder of results, figures from its JSON files.

A cell names figures as `{FILE KEY FORM}`. FORM is a format of Python's (`.0f`), `share` (percent, 95 % interval and
size), or what is computed over the groups whose keys begin with KEY: `worst`, or `without GROUP` (all others together).
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from calomel.storage import write_whole

# A smaller group is noise, not the worst group.
_SMALLEST: Final = 10
_FIGURE: Final = re.compile(r"\{(\S+) (\S+) ([^{}]+)\}")


class Figures:
    """The tables of a folder.

    Raises:
        ValueError: a file is missing, or a figure in it; names the file and says what to do.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            self._tables: dict[str, Any] = tomllib.loads((folder / "tables.toml").read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"{folder} has no tables.toml: name the folder of the results, docs/results") from error
        self._results: dict[str, dict[str, Any]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The tables."""
        return tuple(self._tables)

    def table(self, name: str, base: Path) -> str:
        """Markdown; links as a page in the folder `base` needs them."""
        table = self._tables[name]
        columns, rows = table["columns"], [[*map(self._filled, row["cells"])] for row in table["rows"]]
        if table.get("dates", True):
            columns = [*columns, "measured"]
            rows = [[*cells, self._measured(row["of"], base)] for cells, row in zip(rows, table["rows"], strict=True)]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, ["---"] * len(columns), *rows))

    def write(self, page: Path) -> None:
        """Put each table between its comments, `<!-- NAME -->` and `<!-- /NAME -->`, into the page that has them."""
        text = page.read_text(encoding="utf-8")
        for name in self.names:
            front, opening, rest = text.partition(f"<!-- {name} -->\n")
            if opening:
                text = f"{front}{opening}\n{self.table(name, page.parent)}\n\n{rest[rest.index(f'<!-- /{name} -->') :]}"
        write_whole(page, text)

    def _filled(self, cell: str) -> str:
        return _FIGURE.sub(lambda match: self._figure(*match.groups()), cell)

    def _figure(self, file: str, key: str, form: str) -> str:
        values = self._read(file)
        if form == "worst" or form.startswith("without "):
            sizes = {each: size for each, size in values.items() if each.startswith(key) and each.endswith("_n")}
            if form == "worst":
                groups = [each.removesuffix("_n") for each, size in sizes.items() if size >= _SMALLEST]
                low = min(groups, key=values.__getitem__)
                return f"{low.removeprefix(key).replace('_', ' ')}: {_percent(values[low])} of {values[f'{low}_n']}"
            sizes.pop(f"{key}{form.removeprefix('without ')}_n", None)
            right = sum(values[each.removesuffix("_n")] * size for each, size in sizes.items())
            return f"{_percent(right / sum(sizes.values()))} of {sum(sizes.values())}"
        if key not in values:
            raise ValueError(f"{self._folder / file}.json has no {key}: run its bench again, or correct tables.toml")
        if form == "share":
            of = f" of {values[f'{key}_n']:,}" if f"{key}_n" in values else ""
            return f"{_percent(values[key])} [{_percent(values[f'{key}_low'])}, {_percent(values[f'{key}_high'])}]{of}"
        return f"{values[key]:{form}}"

    def _measured(self, file: str, base: Path) -> str:
        page = self._folder / f"{file}.md"
        target = page if page.exists() else page.with_suffix(".json")
        return f"[{self._read(file)['date']}]({Path(os.path.relpath(target, base)).as_posix()})"

    def _read(self, file: str) -> dict[str, Any]:
        if file not in self._results:
            path = self._folder / f"{file}.json"
            if not path.exists():
                raise ValueError(f"{path} is missing: run its bench with --json {path}")
            self._results[file] = dict(_flat(json.loads(path.read_text(encoding="utf-8"))))
        return self._results[file]


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Members of objects by keys with dots."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"
