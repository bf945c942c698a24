"""Drafts for imports: added for what the newest edits use, removed for what they were the last to use.

For Go, the paths of the standard library are known. In Python, TypeScript, JavaScript and Rust, a name is imported as
in another open file, or as this one did before; nothing else is guessed (docs/decisions/017).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import Final

from calomel.suggest.drafts.evidence import EditDraft, Evidence
from calomel.suggest.drafts.text import Rows, is_import, is_name, is_prose, is_quoted, read_list, removed, words

MAKER: Final = "imports"
_PACKAGES: Final = (
    "bufio bytes cmp context embed errors expvar flag fmt hash io iter log maps os path plugin reflect regexp runtime"
    " slices sort strconv strings sync syscall testing time unicode unique unsafe compress/gzip container/heap"
    " container/list crypto/hmac crypto/md5 crypto/sha256 crypto/tls crypto/x509 database/sql encoding/base64"
    " encoding/binary encoding/csv encoding/hex encoding/json encoding/xml go/ast go/parser go/token html/template"
    " io/fs log/slog math math/big math/bits net net/http net/http/httptest net/netip net/url os/exec os/signal"
    " path/filepath runtime/debug sync/atomic testing/fstest text/tabwriter unicode/utf8"
)
_PATHS: Final = {path.rpartition("/")[2]: path for path in _PACKAGES.split()}
_QUALIFIES: Final = re.compile(r"(?<![\w.$])([a-z]\w*)\.")
_DECLARED: Final = r"\b(?:func|var|type|const)\s+{0}\b|(?<![\w.]){0}\s*(?::=|=(?!=))"
_LINE: Final = re.compile(r'\s+(?:[\w.]+\s+)?"[^"]+"\s*$')
# What precedes the imports: comments and the package clause.
_HEAD: Final = re.compile(
    r"(?:[ \t]*//[^\n]*\n|[ \t]*/\*(?:[^*]|\*(?!/))*\*/[ \t]*\r?\n|[ \t]*\r?\n)*package \w+[^\n]*\n"
)


def imports(rows: Rows, seen: Evidence, path: str | None, others: Sequence[str] = ()) -> Iterator[EditDraft]:
    """Drafts that import what only the newest edits use, and drop what they were the last to use.

    Args:
        rows: of the document.
        seen: the last edits.
        path: of the document; its suffix shows the language.
        others: import lines of other files of the language, as they would be in this one.
    """
    yield from _unused(rows, seen)
    if path is not None and PurePosixPath(path).suffix in _SUFFIXES:
        yield from _wanted(rows, seen, others)
    for name in dict.fromkeys(_new_names(rows, seen)) if path is not None and path.endswith(".go") else ():
        draft = _placed(rows, f'"{_PATHS[name]}"')
        if draft is not None:
            yield draft


def _new_names(rows: Rows, seen: Evidence) -> Iterator[str]:
    fresh = [(edit.new, edit.old) for edit in seen.edits if edit.row is not None and not edit.age]
    new = [each for each in seen.insertions if each.row is not None and not each.age]
    fresh += [(line, "") for each in new for line in each.lines]
    fresh = [(line, old) for line, old in fresh if not is_prose(line)]
    together = "\n".join(line for line, _ in fresh)
    for line, old in fresh:
        for match in _QUALIFIES.finditer(line):
            name = match[1]
            if name not in _PATHS or any(rows.names.uses(old, name)) or is_quoted(line, match.start()):
                continue
            uses, known = len(list(rows.names.uses(together, name))), len(list(rows.uses(name)))
            if known == uses and not re.search(_DECLARED.format(name), together):
                yield name


def _placed(rows: Rows, line: str) -> EditDraft | None:
    """Insert in alphabetical order among the imports; below the package clause in a file without any."""
    block = next((row for row, text in enumerate(rows.lines) if text.strip() == "import ("), None)
    if any(each.strip() == line or each.strip() == f"import {line}" for each in rows.lines):
        return None
    if block is None:
        head = _HEAD.match(rows.text)
        new = f"{rows.line_end}import {line}{rows.line_end}"
        return None if head is None else EditDraft(head.end(), head.end(), new, MAKER, 1, 0.8)
    end = next((row for row in range(block + 1, len(rows)) if not _LINE.match(rows.lines[row])), len(rows))
    before = [row for row in range(block + 1, end) if rows.lines[row].strip() < line]
    at = rows.start(before[-1] + 1 if before else block + 1)
    return EditDraft(at, at, f"\t{line}{rows.line_end}", MAKER, 1, 0.8) if end > block + 1 else None


_SUFFIXES: Final = frozenset({".py", ".pyi", ".ts", ".tsx", ".mts", ".js", ".jsx", ".mjs", ".rs"})
_FEWEST_LETTERS: Final = 3
_ALIAS: Final = re.compile(r"\bas\b")
# Lines that import one name: Python, TypeScript and JavaScript, Rust.
_FORMS: Final = tuple(
    map(
        re.compile,
        (
            r"from [\w.]+ import (\w+)",
            r"import (\w+)",
            r"import (?:type )?\{ ?(\w+) ?\} from ([\"'])[^\"']+\2;?",
            r"import (?:\* as )?(\w+) from ([\"'])[^\"']+\2;?",
            r"use (?:\w+::)+(\w+);",
        ),
    )
)


def imported(line: str) -> str | None:
    """The one name that a line imports; None for any other line."""
    return next((match[1] for form in _FORMS if (match := form.fullmatch(line)) is not None), None)


# Lines at the start of a file that may be imports.
_HEAD_LINES: Final = 300
_RELATIVE: Final = re.compile(r"from \.|.*[\"']\.|use (?:super|self)::")


def import_lines(text: str, *, near: bool) -> Iterator[str]:
    """The lines of another file that import one name each; relative imports only if it is `near`."""
    for line in islice(text.splitlines(), _HEAD_LINES):
        if imported(line) is not None and (near or _RELATIVE.match(line) is None):
            yield line


def _unused(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts that remove the imports of names of which the newest edits removed the last use."""
    # A name that was replaced by another one is renamed in its import instead.
    fewer = (hunk.before for hunk in seen.own if len(words(hunk.after)) < len(words(hunk.before)))
    gone = [line for before in fewer for line in before.splitlines() if not is_import(line)]
    for name in dict.fromkeys(word for line in gone if not is_prose(line) for word in words(line)):
        # Only names that occur once even as a substring: counting whole names would take too long.
        at = rows.text.find(name)
        once = at >= 0 and at == rows.text.rfind(name) and any(rows.uses(name))
        if once and is_name(name) and len(name) >= _FEWEST_LETTERS:
            yield from _without(rows, at)


def _without(rows: Rows, at: int) -> Iterator[EditDraft]:
    """The draft that removes the name at an offset from its import, if it is imported there."""
    row = rows.row(at)
    line, name = rows.lines[row], words(rows.text[at : rows.end(row)])[0]
    if imported(line.strip()) == name:
        yield EditDraft(rows.start(row), rows.start(row + 1), "", MAKER, 1, 0.8)
        return
    bracket = rows.opening(at, rows.start(max(0, row - _LINES)))
    head = rows.row(at if bracket is None else bracket)
    if not is_import(rows.lines[head]) or _ALIAS.search(line):
        return
    if bracket is None:
        # Python's imports need no brackets.
        match = re.match(r"\s*from \S+ import ", line)
        names = [] if match is None else re.split(r"\s*,\s*", line[match.end() :].strip())
        if match is not None and name in names and len(names) > 1 and all(map(str.isidentifier, names)):
            start, left = rows.start(row) + match.end(), [each for each in names if each != name]
            yield EditDraft(start, rows.start(row) + len(line.rstrip()), ", ".join(left), MAKER, 1, 0.8)
        return
    listed = read_list(rows.text, bracket)
    if listed is None:
        return
    index = next((index for index, item in enumerate(listed.texts(rows.text)) if item == name), None)
    if index is None:
        return
    if len(listed.items) > 1:
        yield EditDraft(*removed(listed, index), MAKER, 1, 0.8)
    elif rows.before(bracket).count("{") == 0:
        yield EditDraft(rows.start(head), rows.start(rows.row(listed.end) + 1), "", MAKER, 1, 0.8)


# Limit of the lines of one import list.
_LINES: Final = 40


def _wanted(rows: Rows, seen: Evidence, others: Sequence[str]) -> Iterator[EditDraft]:
    """Drafts that import what only the newest edits use, as other files do or this document did."""
    known: dict[str, set[str]] = {}
    for line in (*others, *(each.strip() for each in seen.deleted)):
        name = imported(line)
        if name is not None and len(name) >= _FEWEST_LETTERS:
            known.setdefault(name, set()).add(line)
    fresh = [(edit.new, edit.old) for edit in seen.edits if edit.row is not None and not edit.age]
    fresh += [(line, "") for each in seen.insertions if each.row is not None and not each.age for line in each.lines]
    together = "\n".join(line for line, _ in fresh if not is_prose(line) and not is_import(line))
    for name in dict.fromkeys(words(together)):
        lines = known.get(name, set())
        uses = [use for use in rows.names.uses(together, name) if together[use.start() - 1 : use.start()] != "."]
        if len(lines) == 1 and uses and len(list(rows.uses(name))) == len(list(rows.names.uses(together, name))):
            declared = re.search(_DECLARES.format(re.escape(name)), together)
            if declared is None and not all(is_quoted(together, use.start()) for use in uses):
                yield from _among(rows, *lines)


_DECLARES: Final = (
    r"\b(?:def|class|function|fn|let|const|var|struct|enum|trait|type|interface|mod|for|as|lambda)\s+(?:mut\s+)?{0}\b"
    r"|(?<![\w.]){0}\s*(?:=(?!=)|:(?!:))"
)


def _first(line: str) -> bool:
    """Whether a line must stay above all other imports."""
    return line.startswith("from __future__ ")


# Strings over several lines, as far as one character shows where they begin and end.
_LONG: Final = re.compile(r'"""|\'\'\'|`')


def _code_rows(rows: Rows) -> Iterator[int]:
    """The lines that begin outside of strings over several lines."""
    quote = ""
    for row, line in enumerate(rows.lines):
        if not quote:
            yield row
        for found in (
            () if not quote and is_prose(line) and not line.lstrip().startswith('"""') else _LONG.finditer(line)
        ):
            quote = "" if quote == found[0] else quote or found[0]


def _among(rows: Rows, line: str) -> Iterator[EditDraft]:
    """Insert an import in alphabetical order, among those of its kind if there are any."""
    kind = line.split(" ", 1)[0]
    known = [row for row in _code_rows(rows) if imported(rows.lines[row]) is not None and not _first(rows.lines[row])]
    alike = [row for row in known if rows.lines[row].startswith(f"{kind} ")]
    above = [row for row in alike if rows.lines[row].casefold() < line.casefold()] if alike else known
    if known:
        at = rows.start(above[-1] + 1 if above else alike[0])
        yield EditDraft(at, at, line + rows.line_end, MAKER, 1, 0.8)
