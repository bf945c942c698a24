"""What a next-edit client shows of the user's work, in any format, and the unified diffs in it.

Diffs are read leniently. Headers may be missing (`@@`, `diff --git`), line numbers may be made up, context lines may be
missing. What counts is the lines with `-` and `+`: consecutive ones are one edit. File names are read only where both
`---` and `+++` are present, so that a removed SQL comment is not taken for a header.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from calomel.prompts.own import diff_text
from calomel.prompts.parts import Excerpt, Hunk, text_hunks

# The newest edits; a prompt has room for a few dozen.
_KEPT: Final = 64
# The newest edits are at the end; a diff of a whole working tree may be long.
_READ: Final = 262_144
_LINES: Final = 16_384
_NUMBERS: Final = re.compile(r"@@+ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))?")
# How one editor marks an accepted prediction; as a comment of any language.
_ACCEPTED: Final = re.compile(r"(?://+|#+|;+|<!--)[ \t]{0,8}User accepted prediction")
_NOTHING: Final = "/dev/null"
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_PIECES: Final = re.compile(r"\\([0-7]{3}|.)|[^\\]+")
# Of a file's name; no file system allows a longer one.
LONGEST_PATH: Final = 4096
# Diagnostics are prose about code; models would take them for an excerpt of a file, so they are left out.
_DIAGNOSTICS: Final = frozenset({"diagnostics"})
_SYNTAX: Final = frozenset({"treesitter_context", "context/treesitter"})
_DIFF: Final = frozenset({"staged_git_diff", "context/staged_diff"})
# What other makers' models read as a token of their own.
_MODELS_OWN: Final = r"(?=\|[a-z][a-z0-9_]*\|>|\[[a-z▁-]+\]>|filename>)"
_SYNTAX_LINE: Final = re.compile(r"(?:Enclosing scope|Sibling(?:: line \d{1,9})?|Import): (.*)")


@dataclass(frozen=True, slots=True)
class EditPrompt:
    """One region to rewrite and its surroundings.

    `prefix + region + suffix` is the file as the client shows it, byte for byte, without tags.

    Attributes:
        path: of the file; None if the client does not send it. It may be a bare file name, or absolute.
        prefix: the text before the region.
        region: what to rewrite.
        suffix: the text after it.
        cursor: offset of the cursor in `region`, in characters; None if the client does not show it there.
        edits: recent changes, oldest first. Line numbers are the client's, and some clients make them up.
        related: excerpts of other files, in the client's order.
    """

    path: str | None
    prefix: str
    region: str
    suffix: str
    cursor: int | None = None
    edits: tuple[Hunk, ...] = ()
    related: tuple[Excerpt, ...] = ()


class ForeignPromptError(ValueError):
    """A prompt that cannot be read. The message says what is missing and quotes nothing of the prompt."""


def same_file(one: str, other: str) -> bool:
    """Whether two names may be of the same file: one of them ends with the other."""
    one, other = one.replace("\\", "/"), other.replace("\\", "/")
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def parse_hunks(text: str, path: str = "") -> tuple[Hunk, ...]:
    """The newest edits of a diff, oldest first, as the diff groups them.

    Args:
        text: the diff; anything else in it is skipped.
        path: of edits that no file name precedes.
    """
    return tuple(_Reader(path).read(text))


def parse_edits(text: str, path: str = "") -> tuple[Hunk, ...]:
    """The same without unchanged lines and whitespace-only changes, as a person would name them.

    This is the form of our own editor side's diff stream, which the models were trained on.
    """
    edits: list[Hunk] = []
    for hunk in parse_hunks(text, path):
        found = text_hunks(hunk.path, hunk.before, hunk.after, predicted=hunk.predicted)
        edits += [replace(edit, start_line=hunk.start_line + edit.start_line) for edit in found]
    return tuple(edits[-_KEPT:])


class _Reader:
    """One pass over the lines of a diff."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._predicted = False
        # The mark of an accepted prediction comes before the names of its file.
        self._marked = False
        self._hunks: deque[Hunk] = deque(maxlen=_KEPT)
        self._before: list[str] = []
        self._after: list[str] = []
        self._line = 0
        # Lines still expected by the numbers of a hunk, on both sides.
        self._left = (0, 0)

    def read(self, text: str) -> Iterator[Hunk]:
        lines = _end_of(text).split("\n")
        if lines[-1] == "":
            lines.pop()
        first = max(0, len(lines) - _LINES)
        # Lines before the names of a file are of an unknown one.
        at = next((at for at in range(first, len(lines)) if lines[at].startswith("--- ")), first) if first else 0
        while at < len(lines):
            at += self._take(lines, at)
        self._flush()
        yield from self._hunks

    def _take(self, lines: list[str], at: int) -> int:
        """Read what begins at line `at`; returns how many lines that was."""
        line = lines[at]
        if line.startswith("--- ") and self._is_header(lines, at):
            self._flush()
            self._path = _name(line, lines[at + 1])
            self._predicted, self._marked = self._marked, False
            self._left = (0, 0)
            self._line = 0
            return 2
        if line.startswith("@@"):
            self._begin(line)
        elif line.startswith("-"):
            _add(self._before, line)
            self._left = (self._left[0] - 1, self._left[1])
        elif line.startswith("+"):
            _add(self._after, line)
            self._left = (self._left[0], self._left[1] - 1)
        elif line.startswith("\\"):
            self._without_line_end(lines[at - 1] if at else "")
        else:
            self._context(line)
        return 1

    def _is_header(self, lines: list[str], at: int) -> bool:
        if at + 1 >= len(lines) or not lines[at + 1].startswith("+++ "):
            return False
        promised = self._left[0] > 0 and self._left[1] > 0
        return not promised or (at + 2 < len(lines) and lines[at + 2].startswith("@@ -"))

    def _begin(self, line: str) -> None:
        self._flush()
        numbers = _NUMBERS.match(line)
        if numbers is None:
            self._left = (0, 0)
            return
        first, old, new = (1 if number is None else int(number) for number in numbers.groups())
        # An insertion comes after the line that is named.
        self._line = first if old == 0 else max(0, first - 1)
        self._left = (old, new)

    def _without_line_end(self, previous: str) -> None:
        lines = self._before if previous.startswith("-") else self._after if previous.startswith("+") else []
        if lines:
            lines[-1] = lines[-1].removesuffix("\n")

    def _context(self, line: str) -> None:
        self._flush()
        if line.startswith("diff --git "):
            self._left = (0, 0)
        elif _ACCEPTED.match(line):
            self._marked = True
        elif max(self._left) > 0:
            self._line += 1
            self._left = (self._left[0] - 1, self._left[1] - 1)

    def _flush(self) -> None:
        before, after = "".join(self._before), "".join(self._after)
        if before or after:
            self._hunks.append(Hunk(self._path, self._line, before, after, self._predicted))
        self._line += len(self._before)
        self._before.clear()
        self._after.clear()


def _end_of(text: str) -> str:
    """The part of a diff's end that is read, starting at the names of a file."""
    if len(text) <= _READ:
        return text
    start = len(text) - _READ
    named = text.find("\n--- ", start)
    return text[(named if named >= 0 else text.find("\n", start)) + 1 :]


def _add(lines: list[str], line: str) -> None:
    """Add a line without its sign; the previous one ends where this one begins."""
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    lines.append(f"{line[1:]}\n")


def _name(old: str, new: str) -> str:
    """The file that two header lines name, without the prefixes that git adds."""
    old, new = _unquoted(old[4:]), _unquoted(new[4:])
    if new == _NOTHING:
        return old.removeprefix("a/")
    if old == _NOTHING or old.startswith("a/"):
        return new.removeprefix("b/")
    return new


def _unquoted(name: str) -> str:
    """A name as git or diff writes it: possibly followed by a tab and a time, possibly in quotation marks."""
    name = name.rstrip("\r").split("\t", 1)[0][:LONGEST_PATH]
    quoted = _QUOTED.fullmatch(name)
    if quoted is None:
        return name
    return b"".join(map(_octets, _PIECES.finditer(quoted[1]))).decode("utf-8", "replace")


def _octets(piece: re.Match[str]) -> bytes:
    code = piece[1]
    if code is None:
        return piece[0].encode("utf-8", "replace")
    if len(code) == 3:  # noqa: PLR2004 (octal digits of one byte)
        return bytes((int(code, 8) & 0xFF,))
    return {"t": "\t", "n": "\n"}.get(code, code).encode("utf-8", "replace")


def sort_snippets(
    snippets: Iterable[tuple[str | None, str]], current: str | None
) -> tuple[tuple[Excerpt, ...], tuple[Hunk, ...]]:
    """Split snippets, each a path and a text, into excerpts and edits, in their order.

    Signatures around the cursor become an excerpt of the file `current`; staged changes become edits.
    """
    excerpts: list[Excerpt] = []
    staged: tuple[Hunk, ...] = ()
    for path, text in snippets:
        if path in _DIFF:
            staged = parse_edits(text)
        elif path in _DIAGNOSTICS or len(excerpts) >= _KEPT:
            continue
        elif path in _SYNTAX:
            lines = (_SYNTAX_LINE.match(line) for line in text.split("\n"))
            excerpts.append(Excerpt(current or "", 0, "".join(f"{line[1]}\n" for line in lines if line)))
        else:
            excerpts.append(Excerpt(path or "", 0, text))
    return tuple(excerpt for excerpt in excerpts if excerpt.text.strip()), staged


def unforged(text: str) -> str:
    """The user's `text` with special tokens broken up by a space, so that no model reads one in it."""
    return re.sub(f"<{_MODELS_OWN}", "< ", text)


def mended(text: str) -> str:
    """Reverses `unforged`."""
    return re.sub(f"< {_MODELS_OWN}", "<", text)


def ended_like(text: str, region: str) -> str:
    """`text` with the line ends at the end of `region`, which formats do not transmit reliably."""
    return text.rstrip("\n") + region[len(region.rstrip("\n")) :]


def numbered(hunk: Hunk, above: Sequence[str] = (), below: Sequence[str] = ()) -> str:
    """An edit as a hunk of a unified diff, between unchanged lines of its file."""
    around = len(above) + len(below)
    old, new = hunk.before.count("\n") + around, hunk.after.count("\n") + around
    first = hunk.start_line + 1 - len(above)
    numbers = f"@@ -{first if old else first - 1},{old} +{first if new else first - 1},{new} @@"
    lines = ("".join(f" {whole_line(line)}" for line in each) for each in (above, below))
    return f"{numbers}\n{diff_text(hunk).join(lines)}"


def whole_line(text: str) -> str:
    """`text` with a line end."""
    return text if text.endswith("\n") else f"{text}\n"


def cut_cursor(text: str, mark: str) -> tuple[int | None, str]:
    """The cursor's offset in a region, and the region without its mark. Raises ForeignPromptError for several marks."""
    at = text.find(mark)
    if at < 0:
        return None, text
    if text.find(mark, at + 1) >= 0:
        raise ForeignPromptError(f"The region has more than one {mark}, so the region is ambiguous.")
    return at, text[:at] + text[at + len(mark) :]


def split_files(text: str, tokens: Sequence[str]) -> list[tuple[str | None, str]]:
    """The texts that follow lines with a token and a path; the first text may have none."""
    lines = f"^(?:{'|'.join(map(re.escape, tokens))})"
    starts = [found.start() for found in re.finditer(lines, text, re.MULTILINE)] if tokens else []
    files: list[tuple[str | None, str]] = []
    front = text[: starts[0]] if starts else text
    if front or not starts:
        files.append((None, front))
    for start, end in pairwise([*starts, len(text)]):
        line, _, body = text[start:end].partition("\n")
        token = next(token for token in tokens if line.startswith(token))
        files.append((line[len(token) :].strip()[:LONGEST_PATH] or None, body))
    return files
