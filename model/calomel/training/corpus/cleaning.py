"""Decides, file by file, what is trained on: readable hand-written code, not seen before, and not measured on.

The measuring data is read here for one purpose: to find and drop training files that contain it.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import json
import re
import tomllib
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

import zstandard

_TABLE = tomllib.loads(Path(__file__).with_name("cleaning.toml").read_text(encoding="utf-8"))


def _pattern(written: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a pattern written on several lines."""
    return re.compile(written.replace("\n", ""), flags)


# File suffix to the language's name in the corpus.
LANGUAGES: dict[str, str] = _TABLE["languages"]

# Bytes. Smaller files contain only re-exports; larger ones are nearly always tables.
MIN_BYTES = 200
MAX_BYTES = 200_000
# Characters per line.
MAX_MEAN_LINE = 100
MAX_LINE = 1_000
# Shares of a file's characters.
MAX_DIGITS = 0.2
MAX_HEX = 0.1
MAX_NON_ASCII = 0.05

_FOLDERS = {fault: frozenset(folders.split()) for fault, folders in _TABLE["folders"].items()}
_NAMES = {fault: _pattern(names) for fault, names in _TABLE["names"].items()}
_TESTS = frozenset(_TABLE["tests"]["folders"].split())
_TEST_NAME = _pattern(_TABLE["tests"]["names"])
_HEADS = {fault: _pattern(head, re.MULTILINE) for fault, head in _TABLE["heads"].items()}
# Characters at a file's beginning that say what it is.
_HEAD_CHARS = 1_000
_SECRET = _pattern(_TABLE["secrets"]["pattern"])
_SECRET_MARKS: tuple[str, ...] = tuple(_TABLE["secrets"]["marks"])
_HEX = re.compile(r"0x[0-9a-fA-F]+|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}")
MIN_BLOB = 200
_BLOB = re.compile(rf"[A-Za-z0-9+/=]{{{MIN_BLOB},}}")


def language_of(path: str) -> str | None:
    """Return the language of a source file by its suffix, or None for everything else."""
    return LANGUAGES.get(PurePosixPath(path).suffix)


def is_declaration(path: str) -> bool:
    """Tell whether a file contains TypeScript declarations alone."""
    return path.endswith((".d.ts", ".d.mts", ".d.cts"))


def is_test(path: str) -> bool:
    """Tell whether a file is a test by its folder or name."""
    parts = PurePosixPath(path).parts
    return bool(_TESTS.intersection(parts[:-1]) or _TEST_NAME.search(parts[-1]))


def path_fault(path: str) -> str | None:
    """Return why a file is ruled out by its path alone, or None."""
    *_, name = PurePosixPath(path).parts
    parts = {part.lower() for part in PurePosixPath(path).parts}
    faults = [fault for fault, folders in _FOLDERS.items() if parts & folders]
    faults += [fault for fault, names in _NAMES.items() if names.search(name)]
    return next(iter(faults), None)


def text_fault(path: str, content: bytes) -> str | None:
    """Return why a file is ruled out by its content, or None if it is worth training on."""
    if len(content) < MIN_BYTES:
        return "too small"
    if len(content) > MAX_BYTES:
        return "too large"
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return "not UTF-8"
    if "\0" in text:
        return "not text"
    return _head_fault(path, text[:_HEAD_CHARS]) or _shape_fault(text) or _secret_fault(text)


def _head_fault(path: str, head: str) -> str | None:
    asked = _HEADS if language_of(path) == "javascript" else ("generated",)
    return next((fault for fault in asked if _HEADS[fault].search(head)), None)


def _shape_fault(text: str) -> str | None:
    lines = text.splitlines()
    longest = max(map(len, lines))
    if len(text) / max(1, len(lines)) > MAX_MEAN_LINE or longest > MAX_LINE:
        return "minified"
    size = len(text)
    if sum(map(text.count, "0123456789")) > MAX_DIGITS * size:
        return "table"
    if _hex_chars(text) > MAX_HEX * size or (longest >= MIN_BLOB and _BLOB.search(text)):
        return "table"
    if not text.isascii() and len(text.encode()) - size > MAX_NON_ASCII * size:
        return "not ASCII"
    return None


def _hex_chars(text: str) -> int:
    if not any(mark in text for mark in ("0x", "\\x", "\\u")):
        return 0
    return sum(map(len, _HEX.findall(text)))


def _secret_fault(text: str) -> str | None:
    return "secret" if any(mark in text for mark in _SECRET_MARKS) and _SECRET.search(text) else None


# A file is a near-duplicate if more than this share of its distinctive lines was kept before.
NEAR_SHARE = 0.6
# Distinctive lines: long enough, and no comment (licence headers repeat everywhere).
MIN_CHARS = 12
MIN_LINES = 5
_COMMENT = ("#", "//", "/*", "*", "<!--")


# The same file is checked and then added, one after the other.
@lru_cache(maxsize=2)
def _line_hashes(text: str) -> tuple[int, ...]:
    """Return a 64-bit hash of each line that could tell one file from another."""
    stripped = (line.strip() for line in text.splitlines())
    return tuple(_hash(line) for line in stripped if len(line) >= MIN_CHARS and not line.startswith(_COMMENT))


def _hash(line: str) -> int:
    # hash() is salted per process; the corpus must come out the same each time.
    digest = hashlib.blake2b(" ".join(line.split()).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


class SeenText:
    """The text kept so far; tells how much of a new file is not new."""

    def __init__(self, near_share: float = NEAR_SHARE) -> None:
        """Start empty. `near_share` in 0..1: the share of known lines that makes a duplicate."""
        self._near_share = near_share
        self._texts: set[bytes] = set()
        self._lines: set[int] = set()

    def fault(self, text: str) -> str | None:
        """Return `exact duplicate` or `near duplicate` for known text, or None for new text."""
        if _fingerprint(text) in self._texts:
            return "exact duplicate"
        lines = _line_hashes(text)
        if len(lines) < MIN_LINES:
            return None
        known = sum(line in self._lines for line in lines)
        return "near duplicate" if known > self._near_share * len(lines) else None

    def add(self, text: str) -> None:
        """Remember a file that was kept."""
        self._texts.add(_fingerprint(text))
        self._lines.update(_line_hashes(text))


@lru_cache(maxsize=2)
def _fingerprint(text: str) -> bytes:
    return hashlib.sha256(" ".join(text.split()).encode()).digest()


# A training file that shares this many different distinctive lines with the measuring data is dropped.
SHARED_LINES = 3
# Characters of a line, whitespace collapsed, that make sharing it more than chance.
MIN_LINE_CHARS = 40
MIN_LETTERS = 20

_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}")
_DEF = re.compile(r"\bdef[ \t]+(\w+)[ \t]*\(([^()]{,2000})\)")
_SUBSCRIPT = re.compile(r"\[[^\]]*\]+")
_LEGAL = re.compile(r"copyright|licen[cs]e", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MeasuringData:
    """What must not be trained on: distinctive lines, and the signatures of benchmark functions."""

    lines: frozenset[str]
    signatures: frozenset[str]

    def fault(self, text: str) -> str | None:
        """Return `contaminated` for a file that contains measuring data, or None."""
        functions = {signature.partition("(")[0] for signature in self.signatures}
        if any(signature in self.signatures for signature in python_signatures(text, functions)):
            return "contaminated"
        # All of `lines` are distinctive: that need not be checked for each line of a large corpus.
        flat = (" ".join(line.split()) for line in text.splitlines() if len(line) >= MIN_LINE_CHARS)
        shared = {line for line in flat if line in self.lines}
        return "contaminated" if len(shared) >= SHARED_LINES else None


def read_measuring_data(folder: Path) -> MeasuringData | None:
    """Read every text and JSON file, compressed ones too, under `folder`; None if it does not exist."""
    if not folder.is_dir():
        return None
    lines: set[str] = set()
    signatures: set[str] = set()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        for text in _texts(path):
            lines.update(telling_lines(text))
            if "HumanEval" in path.name:
                signatures.update(python_signatures(text))
    return MeasuringData(frozenset(lines), frozenset(signatures))


def telling_lines(text: str) -> Iterator[str]:
    """Yield the normalised lines that two unrelated files would hardly share."""
    for line in text.splitlines():
        flat = " ".join(line.split())
        if len(flat) < MIN_LINE_CHARS or _LEGAL.search(flat):
            continue
        if sum(map(str.isalpha, flat)) >= MIN_LETTERS:
            yield flat


def python_signatures(text: str, functions: Container[str] | None = None) -> Iterator[str]:
    """Yield the signature of Python functions, all or those named, as `name(parameter,parameter)`, without types."""
    for name, parameters in _DEF.findall(text):
        if functions is None or name in functions:
            given = _SUBSCRIPT.sub("", parameters).split(",")
            names = [re.split(r"[:=]", each, maxsplit=1)[0].strip() for each in given]
            yield f"{name}({','.join(filter(None, names))})"


def _texts(path: Path) -> Iterator[str]:
    raw = path.read_bytes()
    if path.suffix == ".gz":
        raw = gzip.decompress(raw)
    elif path.suffix == ".zst":
        raw = zstandard.ZstdDecompressor().stream_reader(raw).read()
    text = raw.decode("utf-8", errors="replace")
    if {".jsonl", ".ndjson"}.intersection(path.suffixes):
        for line in filter(str.strip, text.split("\n")):
            yield from _joined_task(json.loads(line))
    elif ".json" in path.suffixes:
        yield from _strings(json.loads(text))
    else:
        yield text


def _joined_task(task: object) -> Iterator[str]:
    """Yield a benchmark task as the file that it was cut from, then its strings one by one."""
    if isinstance(task, dict) and {"prompt", "canonical_solution"} <= task.keys():
        yield f"{task['prompt']}{task['canonical_solution']}{task.get('suffix', '')}"
    yield from _strings(task)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        # A recorded body is a JSON document, or one per event of a stream.
        for line in _decoded(value).splitlines():
            try:
                yield from _strings(json.loads(line.removeprefix("data:")))
            except json.JSONDecodeError:
                yield line
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _decoded(value: str) -> str:
    """Return the text inside a base64 string, or nothing if it is not one."""
    if len(value) < MIN_LINE_CHARS or not _BASE64.fullmatch(value):
        return ""
    try:
        return base64.b64decode(value).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""
