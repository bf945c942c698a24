"""A name is used that the file does not have: the import of it, as other files have it or as the language does."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from calomel.suggest.drafts.evidence import EditDraft, Evidence
from calomel.suggest.drafts.text import Rows, Token, changes, indent_of, is_import, is_name, is_prose, tokens

# Names that Python's modules are usually asked for by `from module import name`.
_PYTHON: Final = {
    "abc": "ABC abstractmethod",
    "collections": "ChainMap Counter OrderedDict defaultdict deque namedtuple",
    "collections.abc": "AsyncIterator Awaitable Callable Collection Generator Hashable Iterable Iterator Mapping"
    " MutableMapping Sequence",
    "contextlib": "AsyncExitStack ExitStack asynccontextmanager contextmanager nullcontext suppress",
    "copy": "deepcopy",
    "dataclasses": "asdict astuple dataclass field fields",
    "datetime": "date datetime timedelta timezone",
    "decimal": "Decimal",
    "enum": "Enum IntEnum IntFlag StrEnum",
    "fractions": "Fraction",
    "functools": "cache cached_property lru_cache partial reduce singledispatch total_ordering wraps",
    "itertools": "accumulate chain combinations count groupby islice pairwise permutations product repeat takewhile"
    " zip_longest",
    "operator": "attrgetter itemgetter",
    "pathlib": "Path PurePath PurePosixPath",
    "tempfile": "NamedTemporaryFile TemporaryDirectory",
    "textwrap": "dedent indent",
    "threading": "Lock RLock Thread",
    "types": "MappingProxyType SimpleNamespace TracebackType",
    "typing": "Annotated Any ClassVar Final Generic Literal NamedTuple NoReturn Optional Protocol Self TYPE_CHECKING"
    " TypeAlias TypeVar TypedDict Union cast overload",
    "unittest.mock": "AsyncMock MagicMock Mock patch",
    "uuid": "UUID uuid4",
}
_GO: Final = (
    "bufio bytes cmp context embed errors expvar flag fmt hash io iter log maps os path plugin reflect regexp runtime"
    " slices sort strconv strings sync syscall testing time unicode unique unsafe compress/gzip container/heap"
    " container/list crypto/hmac crypto/md5 crypto/sha256 crypto/tls crypto/x509 database/sql encoding/base64"
    " encoding/binary encoding/csv encoding/hex encoding/json encoding/xml go/ast go/parser go/token html/template"
    " io/fs log/slog math math/big math/bits net net/http net/http/httptest net/netip net/url os/exec os/signal"
    " path/filepath runtime/debug sync/atomic testing/fstest text/tabwriter unicode/utf8"
)
_RUST: Final = {
    "std::borrow": "Borrow Cow",
    "std::cell": "Cell OnceCell RefCell",
    "std::cmp": "Ordering Reverse",
    "std::collections": "BTreeMap BTreeSet BinaryHeap HashMap HashSet VecDeque",
    "std::error": "Error",
    "std::ffi": "CStr CString OsStr OsString",
    "std::fmt": "Debug Display Formatter",
    "std::fs": "File OpenOptions",
    "std::future": "Future",
    "std::io": "BufRead BufReader BufWriter Read Seek Write",
    "std::marker": "PhantomData",
    "std::net": "IpAddr Ipv4Addr Ipv6Addr SocketAddr TcpListener TcpStream",
    "std::ops": "Deref DerefMut Index IndexMut Range",
    "std::path": "Path PathBuf",
    "std::pin": "Pin",
    "std::process": "Command Stdio",
    "std::rc": "Rc Weak",
    "std::str": "FromStr",
    "std::sync": "Arc Condvar Mutex OnceLock RwLock",
    "std::task": "Context Poll Waker",
    "std::time": "Duration Instant SystemTime",
}
_PYTHON_NAMES: Final = {name: module for module, names in _PYTHON.items() for name in names.split()}
_RUST_NAMES: Final = {name: module for module, names in _RUST.items() for name in names.split()}
_GO_NAMES: Final = {path.rpartition("/")[2]: path for path in _GO.split()}


def known_import(language: str, name: str, *, qualifies: bool) -> str | None:
    """The line that brings a name in; None when it is not one of these.

    Args:
        language: `python`, `go` or `rust`.
        name: as it is used.
        qualifies: something of it is used: `name.other`.
    """
    if language == "python":
        if qualifies and name in sys.stdlib_module_names and name not in _PYTHON_NAMES:
            return f"import {name}"
        return f"from {_PYTHON_NAMES[name]} import {name}" if name in _PYTHON_NAMES else None
    if language == "go":
        return f'"{_GO_NAMES[name]}"' if qualifies and name in _GO_NAMES else None
    if language == "rust":
        return f"use {_RUST_NAMES[name]}::{name};" if name in _RUST_NAMES else None
    return None


MAKER: Final = "imports"
_LANGUAGES: Final = {
    "py": "python", "pyi": "python", "go": "go", "rs": "rust", "ts": "typescript", "tsx": "typescript",
    "mts": "typescript", "js": "typescript", "jsx": "typescript", "mjs": "typescript",
}  # fmt: skip
_DECLARED: Final = (
    r"\b(?:def|class|func|fn|function|let|const|var|type|struct|enum|trait|interface|for|as|mut|mod)\s+{0}\b"
)
_ASSIGNED: Final = r"(?<![\w.]){0}\s*(?::=|=(?!=)|:\s*[\w\[])"
_GO_LINE: Final = re.compile(r'\s+(?:[\w.]+\s+)?"[^"]+"\s*$')
_FROM: Final = re.compile(r"from\s+([\w.]+)\s+import\s+([\w, ]+)$")
_BRACED: Final = re.compile(r"import\s+(type\s+)?\{\s*([\w, ]+?),?\s*\}\s+from\s+([\"'][^\"']+[\"'];?)$")
_ROOT: Final = re.compile(r"(?:from|import|use|pub use)\s+(\w+)")
_NAMES: Final = 4
_SLASHES: Final = r"(?:[ \t]*//[^\n]*\n|[ \t]*/\*(?:[^*]|\*(?!/))*\*/[ \t]*\r?\n|[ \t]*\r?\n)*"
# What stands above the imports: the file's own comments, its documentation, its package.
_HEADS: Final = {
    "python": re.compile(
        r"(?:[ \t]*#[^\n]*\n|[ \t]*\r?\n)*(?:[rRuU]?(?P<q>\"{3}|'{3})(?s:.*?)(?P=q)[ \t]*(?:\r?\n)+)?"
    ),
    "typescript": re.compile(rf"(?:#![^\n]*\n)?{_SLASHES}(?:[\"']use \w+[\"'];?[ \t]*(?:\r?\n)+)*"),
    "rust": re.compile(rf"(?:{_SLASHES}#!\[[^\n]*\n)*{_SLASHES}"),
    "go": re.compile(rf"{_SLASHES}package \w+[^\n]*\n"),
}


def imports(rows: Rows, seen: Evidence, path: str | None, others: Sequence[str] = ()) -> Iterator[EditDraft]:
    """Drafts for names that the newest edits brought in, in Python, TypeScript, Go and Rust.

    Args:
        rows: of the document.
        seen: the last edits.
        path: of the document, which tells its language.
        others: texts of other files, which may have the import that is missing.
    """
    language = _LANGUAGES.get((path or "").rpartition(".")[2])
    if language is None:
        return
    count = 0
    for name, qualifies in _new_names(rows, seen, language):
        lines = dict.fromkeys(_lines(language, name, others, qualifies=qualifies))
        for line in lines:
            draft = _placed(rows, line, language)
            if draft is not None:
                yield draft
        count += bool(lines)
        if count >= _NAMES:
            return


def _new_names(rows: Rows, seen: Evidence, language: str) -> Iterator[tuple[str, bool]]:
    """Names that only the newest edits use and that nothing here declares, and whether something of them is used."""
    fresh: list[tuple[str, list[Token]]] = []
    for edit in seen.edits:
        if edit.row is not None and not edit.age and not is_prose(edit.new):
            old = tokens(edit.old)
            before = {token.text for token in old}
            new = {text for op in changes(old, tokens(edit.new)) for text in op.inserted}
            fresh.append((edit.new, [token for token in tokens(edit.new) if token.text in new - before]))
    for insertion in seen.insertions:
        if insertion.row is not None and not insertion.age:
            fresh += [(line, list(tokens(line))) for line in insertion.lines if not is_prose(line)]
    whole = "\n".join(line for line, _ in fresh)
    told: set[str] = set()
    for line, found in fresh:
        for token in found:
            name, behind = token.text, line[token.end :]
            if not is_name(name) or name in told or line[: token.start].rstrip().endswith((".", "::", "->")):
                continue
            if is_import(line) or re.match(r"\s*(?:=(?!=)|:(?![:=]))", behind) or _quoted(line, token.start):
                continue
            told.add(name)
            uses = len(re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", rows.text))
            known = uses > len(re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", whole))
            declared = re.search(_DECLARED.format(re.escape(name)), whole) or re.search(
                _ASSIGNED.format(re.escape(name)), whole
            )
            if not known and not declared:
                yield name, behind.startswith("." if language != "rust" else "::")


def _quoted(line: str, at: int) -> bool:
    before = line[:at]
    return before.count('"') % 2 == 1 or before.count("`") % 2 == 1 or re.search(r"#|//", before) is not None


def _lines(language: str, name: str, others: Sequence[str], *, qualifies: bool) -> Iterator[str]:
    known = known_import(language, name, qualifies=qualifies)
    if known is not None:
        yield known
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    for text in others:
        for line in text.split("\n"):
            stripped = line.strip()
            if len(stripped) > 160 or not word.search(stripped):  # noqa: PLR2004 (longer lines are lists of their own)
                continue
            if language == "go" and _GO_LINE.match(line) and qualifies:
                yield stripped
            elif is_import(stripped):
                yield from _single(stripped, name)


def _single(line: str, name: str) -> Iterator[str]:
    """The import of one name, of a line that may import others too."""
    found = _FROM.match(line)
    if found is not None:
        if name in re.split(r"[, ]+", found[2]):
            yield f"from {found[1]} import {name}"
        return
    braced = _BRACED.match(line)
    if braced is not None:
        if name in re.split(r"[, ]+", braced[2]):
            yield f"import {braced[1] or ''}{{ {name} }} from {braced[3]}"
        return
    if re.search(rf"(?:^import|::|\bas|^use)\s*{re.escape(name)}(?:\s+from\b.*)?;?$", line):
        yield line


def _placed(rows: Rows, line: str, language: str) -> EditDraft | None:
    """In the list of the same module, else among the imports in the order of the alphabet."""
    merged = _merged(rows, line)
    if merged is not None:
        return merged
    if language == "go":
        block = next((row for row, text in enumerate(rows.lines) if text.strip() == "import ("), None)
        if block is None:
            return _first(rows, f"import {line}", language)
        group = []
        for row in range(block + 1, len(rows)):
            if not _GO_LINE.match(rows.lines[row]):
                break
            group.append(row)
        indent = "\t"
    else:
        block = next((row for row, text in enumerate(rows.lines) if is_import(text) and not indent_of(text)), None)
        if block is None:
            return _first(rows, line, language)
        group = _group(rows, block, line)
        indent = ""
    if not group:
        return None
    before = [row for row in group if rows.lines[row].strip() < line]
    at = rows.start(before[-1] + 1) if before else rows.start(group[0])
    return EditDraft(at, at, indent + line + rows.line_end, MAKER, 1, 0.8)


def _first(rows: Rows, line: str, language: str) -> EditDraft | None:
    """Below what says what the file is, in a file without imports."""
    head = _HEADS[language].match(rows.text)
    if head is None:
        return None
    at = head.end()
    below = rows.text[at:].lstrip("\r\n")
    blanks = 2 if language == "python" and re.match(r"(?:async\s+)?def\b|class\b|@", below) else 1
    above = rows.line_end if language == "go" else ""
    have = rows.text[at : len(rows.text) - len(below)].count("\n")
    return EditDraft(at, at, above + line + rows.line_end * (1 + max(0, blanks - have)), MAKER, 1, 0.8)


def _group(rows: Rows, first: int, line: str) -> list[int]:
    """The run of imports that begins as the new one does, else the first one of all."""
    runs: list[list[int]] = []
    for row in range(first, len(rows)):
        text = rows.lines[row]
        if is_import(text) and not indent_of(text):
            if runs and runs[-1][-1] == row - 1:
                runs[-1].append(row)
            else:
                runs.append([row])
    alike = [run for run in runs if any(_root(rows.lines[row]) == _root(line) for row in run)]
    return (alike or runs)[0]


def _root(line: str) -> str:
    """The package that an import is from, as far as the line says it first."""
    match = _ROOT.match(line.strip())
    return match.group(1) if match else ""


def _merged(rows: Rows, line: str) -> EditDraft | None:
    """The name in the list of an import of the same module."""
    for pattern, module in ((_FROM, 1), (_BRACED, 3)):
        wanted = pattern.match(line)
        if wanted is None:
            continue
        for row, text in enumerate(rows.lines):
            found = pattern.match(text)
            if found is None or found[module].rstrip(";").strip("\"'") != wanted[module].rstrip(";").strip("\"'"):
                continue
            listed = 2
            names = [name for name in re.split(r"\s*,\s*", found[listed].strip()) if name]
            new = wanted[listed].strip()
            at = next((place for place, name in enumerate(names) if name > new), len(names))
            joined = ", ".join([*names[:at], new, *names[at:]])
            start = rows.start(row) + found.start(listed)
            return EditDraft(start, start + len(found[listed]), joined, MAKER, 1, 0.9)
    return None
