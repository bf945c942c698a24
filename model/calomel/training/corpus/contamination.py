"""Keeps the data that Calomel is measured on out of what it is trained on.

The measuring data is read here for one purpose: to find and drop training files that hold it.
"""

import base64
import binascii
import gzip
import json
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

# A training file that shares this many distinct telling lines with the measuring data is out.
SHARED_LINES = 3
# Characters of a line, whitespace collapsed, that make sharing it more than chance.
MIN_LINE_CHARS = 40
MIN_LETTERS = 20

_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}")
_SPACE = re.compile(r"\s+")
_DEF = re.compile(r"\bdef[ \t]+(\w+)[ \t]*\(")
_LEGAL = re.compile(r"copyright|licen[cs]e", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MeasuringData:
    """What must not be trained on: telling lines, and the signatures of benchmark functions."""

    lines: frozenset[str]
    signatures: frozenset[str]

    def fault(self, text: str) -> str | None:
        """Return `contaminated` for a file that holds measuring data, or None."""
        functions = {signature.partition("(")[0] for signature in self.signatures}
        if any(signature in self.signatures for signature in python_signatures(text, functions)):
            return "contaminated"
        # What is in `lines` is telling: that each line of a large corpus is too need not be asked first.
        flat = (" ".join(line.split()) for line in text.splitlines() if len(line) >= MIN_LINE_CHARS)
        shared = {line for line in flat if line in self.lines}
        return "contaminated" if len(shared) >= SHARED_LINES else None


def read_measuring_data(folder: Path) -> MeasuringData | None:
    """Read every text, JSON and gzipped file under `folder`; None when it is not there."""
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
        if len(line) < MIN_LINE_CHARS:
            continue
        flat = _SPACE.sub(" ", line).strip()
        if len(flat) < MIN_LINE_CHARS or _LEGAL.search(flat):
            continue
        if sum(map(str.isalpha, flat)) >= MIN_LETTERS:
            yield flat


def python_signatures(text: str, functions: Container[str] | None = None) -> Iterator[str]:
    """Yield the signature of Python functions, all or those named, as `name(parameter,parameter)`, without types."""
    for match in _DEF.finditer(text):
        if functions is not None and match.group(1) not in functions:
            continue
        names = [_parameter_name(part) for part in _parameters(text, match.end())]
        yield f"{match.group(1)}({','.join(name for name in names if name)})"


def _parameters(text: str, start: int) -> Iterator[str]:
    depth, begin = 1, start
    # No signature is longer; an unclosed parenthesis must not scan the whole file.
    for index in range(start, min(len(text), start + 2_000)):
        char = text[index]
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        if depth == 0 or (char == "," and depth == 1):
            yield text[begin:index]
            begin = index + 1
        if depth == 0:
            return


def _parameter_name(part: str) -> str:
    return re.split(r"[:=]", part, maxsplit=1)[0].strip()


def _texts(path: Path) -> Iterator[str]:
    raw = path.read_bytes()
    if path.suffix == ".gz":
        raw = gzip.decompress(raw)
    text = raw.decode("utf-8", errors="replace")
    suffixes = path.suffixes
    if ".jsonl" in suffixes or ".ndjson" in suffixes:
        for line in text.splitlines():
            if line.strip():
                yield from _joined_task(json.loads(line))
    elif ".json" in suffixes:
        yield from _strings(json.loads(text))
    else:
        yield text


def _joined_task(task: object) -> Iterator[str]:
    """Yield a benchmark task as the file that it is cut from, then its strings one by one."""
    if isinstance(task, dict) and {"prompt", "canonical_solution"} <= task.keys():
        yield f"{task['prompt']}{task['canonical_solution']}{task.get('suffix', '')}"
    yield from _strings(task)


def _strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
            if decoded := _decoded(value):
                yield from _body(decoded)
        case list():
            for item in value:
                yield from _strings(item)
        case dict():
            for item in value.values():
                yield from _strings(item)
        case _:
            pass


def _decoded(value: str) -> str | None:
    """Return the text inside a base64 string, or None when it is none."""
    if len(value) < MIN_LINE_CHARS or not _BASE64.fullmatch(value):
        return None
    try:
        return base64.b64decode(value).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None


def _body(text: str) -> Iterator[str]:
    """Yield the strings of a recorded body: a JSON document, or one in each event of a stream."""
    try:
        yield from _strings(json.loads(text))
    except json.JSONDecodeError:
        for line in text.splitlines():
            try:
                yield from _strings(json.loads(line.removeprefix("data:")))
            except json.JSONDecodeError:
                yield line
