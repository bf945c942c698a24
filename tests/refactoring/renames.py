"""Renames drawn from real files, made by a library and by Tab, and what differs."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.refactoring.library import KINDS, Library, LibraryError, Name, by_package
from tests.refactoring.python_library import Rope
from tests.refactoring.tabs import Change, kind_at, syntax_errors, tab_to_the_end, word_changes
from tests.refactoring.typescript_library import LanguageService

from calomel.prompts.parts import Edit
from calomel.workspace.privacy import content_refusal

LANGUAGES: Final = ("python", "typescript", "javascript")
_PATHS: Final = {"python": "drawn.py", "typescript": "drawn.ts", "javascript": "drawn.js"}
# Characters of a file: a smaller one has nothing to confuse, a larger one takes the library long.
_SMALLEST, _LARGEST = 1_000, 60_000
# Places of one rename: nobody presses Tab more often than that.
_MOST: Final = 80
# Half of the renames are of parameters and locals each time a kind is drawn.
_WEIGHTS: Final = {"parameter": 3, "local": 3, "definition": 2, "member": 2}
# One rename in so many begins at a use, and not at the declaration.
_AT_A_USE: Final = 5
_JUDGED: Final = Path(__file__).parent / "judged.toml"


@dataclass(frozen=True, slots=True)
class Drawn:
    """One rename.

    Attributes:
        file: from its package on.
        text: of the file.
        name: what is renamed, at its declaration.
        new: its name afterwards.
        first: the place that the person changes.
        wanted: all places, as the library changes them.
    """

    file: str
    path: Path
    text: str
    name: Name
    new: str
    first: Change
    wanted: frozenset[Change]


@dataclass(frozen=True, slots=True)
class Outside:
    """A word that the library leaves as it is."""

    kind: str
    row: int
    old: str
    new: str
    line: str
    maker: str


@dataclass(frozen=True, slots=True)
class Found:
    """What Tab did of a rename.

    Attributes:
        found: places of the library's that were changed as it does, without the first.
        wanted: their number.
        outside: other words that were changed.
        judged: others, for which the table of exceptions says that they are right.
        broken: what is wrong with the file: it no longer parses, or has names that nothing declares.
        ended: Tab came to an end.
    """

    drawn: Drawn
    found: int
    wanted: int
    outside: tuple[Outside, ...]
    judged: int
    broken: str
    ended: bool


def library_of(language: str) -> Library:
    """Raises LibraryError where it is not installed."""
    if language == "python":
        return Rope()
    return LanguageService("typescript" if language == "typescript" else "javascript")


def drawn_files(library: Library, rng: random.Random) -> Iterator[tuple[Path, str]]:
    """Files of the language in which suggestions are on, each package as likely as another, until all were drawn."""
    packages = list(by_package(library.files(), library.root))
    while packages:
        package = rng.choice(packages)
        path = package.pop(rng.randrange(len(package)))
        if not package:
            packages.remove(package)
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue
        if _SMALLEST < len(text) < _LARGEST and "\r" not in text and not content_refusal(text):
            yield path, text


def draw(library: Library, seed: int, kinds: Sequence[str] = KINDS) -> Iterator[Drawn]:
    """Renames without an end, the same ones for a seed and the installed files; one a file."""
    rng = random.Random(seed)
    for path, text in drawn_files(library, rng):
        found = _drawn(library, path, text, rng, kinds)
        if found is not None:
            yield found


def _drawn(library: Library, path: Path, text: str, rng: random.Random, kinds: Sequence[str]) -> Drawn | None:
    """A rename in a file with more than one place; None where there is none."""
    try:
        names = library.names(path, text)
    except LibraryError:
        return None
    for _ in range(6):
        kind = rng.choices(kinds, [_WEIGHTS[each] for each in kinds])[0]
        chosen = [each for each in names if each.kind == kind and len(each.old) > 1]
        if not chosen:
            continue
        name = rng.choice(chosen)
        new = _new_name(name.old, text, rng)
        try:
            renamed = library.renamed(path, text, name, new)
            if library.unknown(path, renamed) - library.unknown(path, text):
                continue  # it misses uses
            wanted = word_changes(text, renamed)
        except LibraryError:
            continue
        declared = next((each for each in wanted if each.start == name.start), None)
        if declared is None or not 2 <= len(wanted) <= _MOST:
            continue
        plain = sorted(each for each in wanted if each.new == new)
        first = rng.choice(plain) if rng.randrange(_AT_A_USE) == 0 else declared
        return Drawn(str(path.relative_to(library.root)), path, text, name, new, first, wanted)
    return None


def _new_name(old: str, text: str, rng: random.Random) -> str:
    """Another name, spelled as the old one, that the file does not have."""
    stem = old.lstrip("_#")
    lead = old[: len(old) - len(stem)]
    other = rng.choice(("quartz", "lantern", "marble", "walnut"))
    if stem.isupper():
        new = rng.choice((f"{stem}_{other.upper()}", other.upper()))
    elif stem[:1].isupper():
        new = rng.choice((f"{stem}{other.title()}", other.title()))
    elif "_" in stem or stem == stem.lower():
        new = rng.choice((f"{stem}_{other}", f"{other}_{stem}", other))
    else:
        new = rng.choice((f"{stem}{other.title()}", f"{other}{stem[:1].upper()}{stem[1:]}", other))
    while new in text:
        new += "x"
    return lead + new


async def tabbed(language: str, library: Library, drawn: Drawn) -> Found:
    """Make the first edit of a rename and press Tab to the end."""
    path, text = _PATHS[language], drawn.text
    path = Path(path).stem + drawn.path.suffix
    first = Edit(*drawn.first)
    chain = await tab_to_the_end(path, text, (first,))
    changes = word_changes(text, chain.text)
    right = (changes & drawn.wanted) - {drawn.first}
    outside, judged = [], 0
    for change in sorted(changes - drawn.wanted):
        low, row = text.rfind("\n", 0, change.start) + 1, text.count("\n", 0, change.start) + 1
        high = text.find("\n", change.end)
        line = text[low : len(text) if high < 0 else high].strip()
        if (drawn.file, drawn.name.old, line) in _judged():
            judged += 1
            continue
        kind, old = kind_at(path, text, change.start), text[change.start : change.end]
        makers = "+".join(dict.fromkeys(maker for maker, _ in chain.offers))
        outside.append(Outside(kind, row, old, change.new, line, makers))
    broken = _broken(library, drawn, path, chain.text)
    return Found(drawn, len(right), len(drawn.wanted) - 1, tuple(outside), judged, broken, chain.ended)


def _broken(library: Library, drawn: Drawn, path: str, after: str) -> str:
    try:
        before = library.unknown(drawn.path, drawn.text)
        missing = library.unknown(drawn.path, after) - before
    except LibraryError as error:
        return str(error)
    if syntax_errors(path, after) > syntax_errors(path, drawn.text):
        return "more syntax errors"
    return f"nothing declares {', '.join(sorted(missing))}" if missing else ""


@cache
def _judged() -> frozenset[tuple[str, str, str]]:
    """File, old name and line of the places that are right although the library leaves them as they are."""
    with _JUDGED.open("rb") as file:
        table = tomllib.load(file)
    return frozenset((each["file"], each["name"], each["line"]) for each in table.get("place", ()))
