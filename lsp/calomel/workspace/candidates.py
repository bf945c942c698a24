"""Passages of other files that may help at a cursor, found in the index; overlapping ones are merged.

A program's imports are read by patterns of its language, and matched to the indexed files.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from calomel.code.languages import CONTAINERS, TABLES
from calomel.workspace.index import Defined, Index, SegmentFile, search
from calomel.workspace.segment import IndexedDefinition, count_numbers, kind_name, words_in
from calomel.workspace.syntax import WORD

PassageSource = Literal["definition", "usage", "import", "recent", "similar"]

# A function of up to this many lines is shown whole; of a longer one, and of a class, the beginning.
_WHOLE: Final = 40
_BEGINNING: Final = 24
# A name that is defined in more files than this means nothing, unless one of them is imported.
_MOST_DEFINITIONS: Final = 6
_DEFINITIONS_OF_ONE: Final = 2
# A name with more definitions than this is not even looked at.
_MOST_PLACES: Final = 32
# A name in more chunks than this is used everywhere.
_MOST_USAGES: Final = 40
_USAGES_OF_ONE: Final = 2
_NAMES_LOOKED_AT: Final = 12
_NAMES_WITH_USAGES: Final = 6
_AROUND_USAGE: Final = 4
# Signatures shown of an imported file.
_SIGNATURES: Final = 6
_IMPORTED_FILES: Final = 6
_SIGNATURE_LINES: Final = 6
_SIMILAR: Final = 12
_SIMILAR_OF_ONE_FILE: Final = 3
# Chunks much less alike than the best one are noise.
_ALIKE: Final = 0.35
_OFTEN: Final = 3
# How a source is weighted against the others; within one, the nearest name, newest place or best match comes first.
_WEIGHTS: Final[dict[PassageSource, float]] = {
    "definition": 1.0,
    "recent": 0.7,
    "usage": 0.45,
    "similar": 0.4,
    "import": 0.3,
}
_NEXT_NAME: Final = 0.97
_ELSEWHERE: Final = 0.6
_OTHER_LANGUAGE: Final = 0.5
# An excerpt begins and ends at a block start that is at most this many lines away.
_SNAP: Final = 8


@dataclass(frozen=True, slots=True)
class Passage:
    """Some lines of a file.

    Attributes:
        path: of the file, absolute, or the uri of a document that has none.
        start, end: lines, `end` excluded.
        word: must occur in the lines; empty for none.
    """

    path: str
    start: int
    end: int
    source: PassageSource
    score: float
    word: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched for.

    Attributes:
        path: of the cursor's own file, which is excluded; None for none.
        family: of its language (`calomel.workspace.segment.family_of`).
        names: identifiers near the cursor, the nearest first.
        imported: files that it imports, in order.
        nearby: the text around the cursor.
    """

    path: str | None
    family: str
    names: tuple[str, ...]
    imported: tuple[str, ...]
    nearby: str


def from_index(index: Index, question: Question, late: Callable[[], bool]) -> Iterator[Passage]:
    """All candidates from the index, the most valuable sources first, until it is late."""
    defined = index.definitions(question.names, question.imported, _MOST_PLACES)
    yield from _definitions(defined, question)
    for source in (_usages(index, question, defined), _similar(index, question, late), _signatures(index, question)):
        if late():
            return
        yield from source


def weigh(source: PassageSource, part: float) -> float:
    """The score of a candidate with a `part` of its source's weight."""
    return _WEIGHTS[source] * part


def _definitions(defined: dict[str, list[Defined]], question: Question) -> Iterator[Passage]:
    folder = posixpath.dirname(question.path or "")
    for rank, name in enumerate(question.names):
        everywhere = defined.get(name, ())
        own = any(place.file.path == question.path for place, _ in everywhere)
        definitions = [
            (place, each)
            for place, each in everywhere
            if place.file.path != question.path and place.file.family == question.family
        ]
        near = [(place, each) for place, each in definitions if place.file.path in question.imported]
        if not near:
            # The file's own definition is meant; and an attribute of that name belongs to something else.
            definitions = [] if own else [(place, each) for place, each in definitions if not _is_attribute(each)]
            if len({place.file.path for place, _ in definitions}) > _MOST_DEFINITIONS:
                continue
        chosen = sorted(
            near or definitions, key=lambda pair: (*_distance(pair[0], folder), pair[1].depth, pair[1].line)
        )
        for place, each in chosen[:_DEFINITIONS_OF_ONE]:
            part = _NEXT_NAME**rank * (1.0 if near else _ELSEWHERE)
            start, end = _extent(place, each)
            yield Passage(place.file.path, start, end, "definition", weigh("definition", part), name)


def _is_attribute(definition: IndexedDefinition) -> bool:
    return definition.depth > 0 and kind_name(definition.kind) == "variable"


def _distance(place: SegmentFile, folder: str) -> tuple[int, str]:
    path = place.file.path
    shared = posixpath.commonpath((path, folder)) if folder else ""
    return -len(shared), path


def _extent(place: SegmentFile, definition: IndexedDefinition) -> tuple[int, int]:
    """The lines of a definition that are worth showing."""
    if definition.end - definition.line <= _WHOLE:
        return definition.line, definition.end
    end = definition.line + _BEGINNING
    if kind_name(definition.kind) in CONTAINERS:
        starts = place.file.starts
        inner = starts[(starts > max(definition.body, definition.line + _BEGINNING // 2)) & (starts <= end)]
        end = int(inner[-1]) if len(inner) else end
    return definition.line, max(end, min(definition.body, definition.line + _WHOLE))


def _usages(index: Index, question: Question, defined: dict[str, list[Defined]]) -> Iterator[Passage]:
    """Usages of the nearest rare names."""
    left = _NAMES_WITH_USAGES
    for rank, name in enumerate(question.names[:_NAMES_LOOKED_AT]):
        if left == 0:
            return
        used = index.usages(name, _MOST_USAGES)
        if not used:
            continue
        left -= 1
        own = {(place.file.path, each.line) for place, each in defined.get(name, ())}
        shown = 0
        for place, chunk in used:
            if shown == _USAGES_OF_ONE:
                break
            if place.file.path == question.path or place.file.family != question.family:
                continue
            line = _line_with(place, chunk, name, own)
            if line is None:
                continue
            shown += 1
            start, end = snap(place.file.starts, line - _AROUND_USAGE, line + _AROUND_USAGE + 1)
            part = _NEXT_NAME**rank / (1 + 0.1 * len(used))
            yield Passage(place.file.path, start, min(end, place.file.lines), "usage", weigh("usage", part), name)


def _line_with(place: SegmentFile, chunk: int, name: str, own: set[tuple[str, int]]) -> int | None:
    """The first line of a chunk that mentions a name without defining it."""
    arrays = place.segment.arrays
    first, end = int(arrays["chunk_line"][chunk]), int(arrays["chunk_end"][chunk])
    for number, line in enumerate(place.segment.lines(place.number, first, end), first):
        if name in line and (place.file.path, number) not in own and name in WORD.findall(line):
            return number
    return None


def _similar(index: Index, question: Question, late: Callable[[], bool]) -> Iterator[Passage]:
    """Chunks with similar words."""
    words = {word: min(count, _OFTEN) for word, count in words_in(question.nearby).items()}
    hits = search(index.segments, count_numbers(words), 2 * _SIMILAR, late)
    taken: dict[str, int] = {}
    best = 0.0
    for hit in hits:
        arrays = hit.segment.arrays
        number = int(arrays["chunk_file"][hit.chunk])
        file = hit.segment.files[number]
        if file.path == question.path or taken.get(file.path, 0) >= _SIMILAR_OF_ONE_FILE:
            continue
        best = best or hit.score
        if hit.score < _ALIKE * best or sum(taken.values()) >= _SIMILAR:
            return
        taken[file.path] = taken.get(file.path, 0) + 1
        part = hit.score / best * (1.0 if file.family == question.family else _OTHER_LANGUAGE)
        start, end = int(arrays["chunk_line"][hit.chunk]), int(arrays["chunk_end"][hit.chunk])
        yield Passage(file.path, start, end, "similar", weigh("similar", part))


def _signatures(index: Index, question: Question) -> Iterator[Passage]:
    """Top-level definitions of imported files."""
    for rank, path in enumerate(question.imported[:_IMPORTED_FILES]):
        place = index.place(path)
        if place is None:
            continue
        tops = [each for each in place.segment.definitions_of(place.number) if each.depth == 0]
        worth = [each for each in tops if kind_name(each.kind) != "variable"] or tops
        for number, each in enumerate(worth[:_SIGNATURES]):
            end = min(each.end, max(each.body, each.line + 1), each.line + _SIGNATURE_LINES)
            part = _NEXT_NAME ** (rank + number)
            yield Passage(path, each.line, end, "import", weigh("import", part))


def snap(starts: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.uint32]], start: int, end: int) -> tuple[int, int]:
    """The lines, widened to nearby block starts."""
    lines = np.asarray(starts, dtype=np.int64)
    before = lines[(lines <= max(0, start)) & (lines >= start - _SNAP)]
    behind = lines[(lines >= end) & (lines <= end + _SNAP)]
    return (int(before[-1]) if len(before) else max(0, start)), (int(behind[0]) if len(behind) else end)


# Imports are at the top; those far below are rare and cost time.
_HEAD: Final = 30_000
_MOST_IMPORTS: Final = 60
_SCRIPT_ENDS: Final = (
    "",
    ".ts",
    ".tsx",
    ".d.ts",
    ".js",
    ".jsx",
    ".mjs",
    *map("/index.{}".format, ("ts", "tsx", "js", "jsx")),
)


class Import(NamedTuple):
    """One import as written: possible ends of a path, the best first; `near` ones are relative to the folder."""

    ends: tuple[str, ...]
    near: bool = False


def imports_in(text: str, family: str) -> tuple[Import, ...]:
    """The imports of a program in a language family (`calomel.workspace.segment.family_of`), in order."""
    table = TABLES["imports"].get(family)
    if table is None:
        return ()
    read = _IMPORTS.get(family, partial(_by_table, table))
    imports = (each for match in re.finditer(table["pattern"], text[:_HEAD]) for each in read(match))
    distinct: dict[Import, None] = {}
    for each in imports:
        distinct[each] = None
        if len(distinct) >= _MOST_IMPORTS:
            break
    return tuple(distinct)


def resolve(wanted: Import, path: str, named: Callable[[str], tuple[str, ...]]) -> tuple[str, ...]:
    """The files that an import in the file `path` means, absolute; the closest one if several fit.

    Args:
        wanted: the import.
        path: absolute.
        named: the files whose last part is a name, absolute.
    """
    folder = posixpath.dirname(path)
    for end in wanted.ends:
        if wanted.near:
            exact = posixpath.normpath(posixpath.join(folder, end))
            if exact in named(posixpath.basename(exact)):
                return (exact,)
            continue
        fitting = [each for each in named(posixpath.basename(end)) if each.endswith("/" + end) and each != path]
        if fitting:
            return (min(fitting, key=lambda each: (-len(posixpath.commonpath((each, path))), each)),)
    return ()


def _by_table(table: Mapping[str, Any], match: re.Match[str]) -> Iterator[Import]:
    spec = match["spec"].replace(table.get("separator", "/"), "/")
    near = table.get("near", False) or bool(match.groupdict().get("near"))
    yield Import(tuple(spec + end for end in table["ends"]), near)
    if table.get("both"):
        yield Import(tuple(spec.lstrip("./") + end for end in table["ends"]))


def _python(match: re.Match[str]) -> Iterator[Import]:
    if match["plain"] is not None:
        for each in filter(str.strip, match["plain"].split(",")):
            yield Import(_python_ends(each.split()[0].replace(".", "/")))
        return
    module = match["spec"].lstrip(".")
    up = len(match["spec"]) - len(module)
    base = "../" * (up - 1) + module.replace(".", "/")
    # A name may be a module of the package, or be defined in the package's own file.
    for words in map(str.split, (match["many"] or match["names"] or "").split(",")):
        if words and words[0].isidentifier():
            file = posixpath.join(base, words[0])
            yield Import((f"{file}.py", f"{file}.pyi"), near=up > 0)
    yield Import(_python_ends(base), near=up > 0)


def _python_ends(base: str) -> tuple[str, ...]:
    return (f"{base}.py", f"{base}/__init__.py", f"{base}.pyi") if base else ("__init__.py",)


def _script(match: re.Match[str]) -> Iterator[Import]:
    spec = match["spec"]
    if spec.startswith("."):
        # Compiled TypeScript is imported by its name after compilation.
        bare = re.sub(r"\.(?:js|mjs|jsx)$", "", spec)
        ends = dict.fromkeys([spec, *(bare + end for end in _SCRIPT_ENDS), *(spec + end for end in _SCRIPT_ENDS)])
        yield Import(tuple(ends), near=True)
    elif "/" in spec and not spec.startswith("node:"):
        bare = spec.removeprefix("@/").removeprefix("~/")
        yield Import(tuple(bare + end for end in _SCRIPT_ENDS if end))


def _go(match: re.Match[str]) -> Iterator[Import]:
    parts = match["spec"].split("/")
    # The folder's main file often has its name.
    name = parts[-1]
    ends = [f"{'/'.join(parts[-2:])}/{name}.go"] if len(parts) > 1 else []
    yield Import((*ends, f"{name}/{name}.go", f"{name}/doc.go"))


def _rust(match: re.Match[str]) -> Iterator[Import]:
    parts = (match["mod"] or match["spec"]).split("::")
    near = (
        match["mod"] is not None or next((part for part in parts if part not in {"", "crate", "self"}), "") == "super"
    )
    parts = [part for part in parts if part not in {"", "crate", "self", "super"}]
    shortest = len(parts) if match["mod"] is not None else 1
    tails = ["/".join(parts[:length]) for length in range(len(parts), shortest - 1, -1)]
    if parts:
        yield Import(tuple(end for tail in tails for end in (f"{tail}.rs", f"{tail}/mod.rs")), near)


_IMPORTS: Final = {"python": _python, "javascript": _script, "go": _go, "rust": _rust}


# A gap of up to this many lines between two passages is shown: it costs less than a second header.
_GAP: Final = 3
_LONGEST: Final = 80
# How much a second reason adds to the best one.
_SECOND: Final = 0.15


def merge(candidates: Iterable[Passage]) -> list[Passage]:
    """Passages that do not overlap, each as its strongest candidate, widened and scored with all of its reasons.

    The best comes first; the result does not depend on the order of the candidates.
    """
    ordered = sorted(
        candidates, key=lambda each: (each.path, each.start, each.end, -each.score, each.source, each.word)
    )
    runs: list[list[Passage]] = []
    path, end = "", -1
    for each in ordered:
        touches = path == each.path and each.start <= end + _GAP and max(end, each.end) - runs[-1][0].start <= _LONGEST
        if touches or (path == each.path and each.start < end):
            runs[-1].append(each)
            end = max(end, each.end)
        else:
            runs.append([each])
            path, end = each.path, each.end
    return sorted(map(_one, runs), key=lambda each: (-each.score, each.path, each.start))


def _one(run: Sequence[Passage]) -> Passage:
    best, *others = sorted(run, key=lambda each: (-each.score, each.start, each.end))
    start, end = min(each.start for each in run), max(each.end for each in run)
    if end - start > _LONGEST and others:
        # Keep the strongest reason inside.
        start = max(start, min(best.start, end - _LONGEST))
        end = max(best.end, min(end, start + _LONGEST))
    # The same source found twice at one place is one reason.
    scores = {each.source: each.score for each in reversed(others) if each.source != best.source}
    return replace(best, start=start, end=end, score=best.score + _SECOND * sum(scores.values()))
