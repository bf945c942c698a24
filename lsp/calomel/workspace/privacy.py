"""What no model may see: files, by their names and contents, and secrets inside other files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Final
from unicodedata import normalize

from pathspec import GitIgnoreSpec, RegexPattern

from calomel.storage import read_regular
from calomel.workspace import secrets
from calomel.workspace.check_ignore import AskingError, CheckIgnore, Stamp, is_regular, stamp
from calomel.workspace.secret_patterns import PATTERNS, TABLES
from calomel.workspace.settings import PrivacySettings

# Patterns in file order, each with whether it ignores what it matches.
_Rules = tuple[tuple[re.Pattern[str], bool], ...]
# A file of patterns: the depth of its folder below the repository's, a stamp to detect changes, its rules.
_Level = tuple[int, Stamp, _Rules]
# How much of a .gitignore is read, in bytes.
_LARGEST: Final = 1_000_000
# Reading so many takes half a second.
_MOST_PATTERNS: Final = 5_000
# What the library does not know of fnmatch: `[[:digit:]]`.
_CLASS: Final = re.compile(r"\[:([a-z]+):\]")
_CLASSES: Final = {
    "digit": "0-9", "lower": "a-z", "upper": "A-Z", "alpha": "a-zA-Z", "alnum": "a-zA-Z0-9", "xdigit": "0-9a-fA-F",
    "space": r"\s", "blank": " \t", "punct": r"!-/:-@\[-`{-~",
}  # fmt: skip
_DEEPEST: Final = 64
_KEPT_CONTENTS: Final = 20_000
# About 30,000 lines: nobody reads such a file without a program.
MAX_BYTES: Final = 1_000_000
# How much of a file on disk is inspected.
SNIFFED_BYTES: Final = 8_192
# A mean line length that no person writes (the largest open next-edit client stops at 240).
_LONG_MEAN: Final = 240
_HEAD: Final = 1_000


class GitIgnore:
    """Answers as `git check-ignore` does for untracked files. May be used from several threads.

    Git itself is asked where it is installed; without it, or while it does not answer, our own reading decides: every
    .gitignore from the root of the repository down. A repository within another one, such as a submodule, follows the
    rules of both. Patterns above a workspace folder count inside it, too, but cannot ignore the folder as a whole:
    whoever opens a folder wants to work in it.
    """

    def __init__(self) -> None:
        self._git = CheckIgnore()
        self._files: dict[str, tuple[Stamp, _Rules]] = {}
        self._changes = 0
        self._folders: dict[tuple[Path, Path], tuple[tuple[Stamp, ...], bool]] = {}

    def ignores(self, path: Path, folder: Path | None) -> bool:
        """Whether git would ignore the file. Raises AskingError on an event loop, until git has said it.

        Args:
            path: absolute; need not exist.
            folder: the workspace folder that contains it.
        """
        # The roots of the repositories around it, the innermost first; without any, the workspace folder.
        above = list(path.parents)[:_DEEPEST]
        roots = [each for each in above if stamp(f"{each}/.git") is not None]
        roots = roots or ([] if folder is None else [folder])
        # Of an outer repository, whether it ignores the inner one.
        return any(
            self._ignored_in(root, path if inner is None else inner, folder)
            for root, inner in zip(roots, (None, *roots), strict=False)
        )

    async def answered(self) -> bool:
        """Wait for git, as in `CheckIgnore.answered`."""
        return await self._git.answered()

    @property
    def changes(self) -> int:
        """How often rules were found to have changed."""
        return self._changes + self._git.changes

    def _ignored_in(self, root: Path, path: Path, folder: Path | None) -> bool:
        parts = path.relative_to(root).parts
        opened = 0 if folder is None or not folder.is_relative_to(root) else len(folder.relative_to(root).parts)
        if opened >= len(parts):
            return False
        above = accumulate(parts[:-1], "{}/{}".format, initial=str(root))
        patterns = [(file, stamp(file)) for file in (f"{each}/.gitignore" for each in above)]
        verdict = self._said(root, parts, opened, patterns)
        if verdict is not None:
            return verdict
        # A later one overrides an earlier one.
        levels = [self._level(0, file, stamp(file)) for file in (_users_own(), f"{root}/.git/info/exclude")]
        levels += [self._level(depth, *each) for depth, each in enumerate(patterns)]
        if not any(rules for _, _, rules in levels):
            return False
        states = tuple(state for _, state, _ in levels)
        entry = self._folders.get((root, path.parent))
        if entry is None or entry[0] != states:
            entry = (states, any(_excluded(parts[:d], levels, "/") for d in range(opened + 1, len(parts))))
            if len(self._folders) >= _KEPT_CONTENTS:
                self._folders.clear()
            self._folders[root, path.parent] = entry
        return entry[1] or _excluded(parts, levels, "")

    def _said(
        self, root: Path, parts: tuple[str, ...], opened: int, patterns: Sequence[tuple[str, Stamp]]
    ) -> bool | None:
        """What git says; None when it is not asked or does not say."""
        # Git would wait for a pipe, and read a device for ever.
        if stamp(f"{root}/.git") is None or not all(map(is_regular, (each for _, each in patterns))):
            return None
        if opened and self._git.ignores(root, "/".join(parts[:opened]), patterns) is not False:
            return None
        return self._git.ignores(root, "/".join(parts), patterns)

    def _level(self, depth: int, file: str, state: Stamp) -> _Level:
        entry = self._files.get(file)
        if entry is None or entry[0] != state:
            self._changes += entry is not None
            entry = (state, _read(file) if state is not None and is_regular(state) else ())
            if len(self._files) >= _KEPT_CONTENTS:
                self._files.clear()
            self._files[file] = entry
        return depth, *entry


def _excluded(parts: tuple[str, ...], levels: list[_Level], end: str) -> bool:
    """Whether patterns match the file or folder itself; the last one that matches decides."""
    for depth, _, rules in reversed(levels):
        entry = "/".join(parts[depth:]) + end
        for pattern, ignored in reversed(rules) if depth < len(parts) else ():
            if pattern.search(entry):
                return ignored
    return False


def _users_own() -> str:
    """Where git looks for the patterns of a user who configured no other place."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")  # noqa: PTH111, PTH118
    return f"{base}/git/ignore"


def _read(file: str) -> _Rules:
    try:
        text = read_regular(file, _LARGEST).decode("utf-8-sig", errors="replace")
    except OSError:
        return ()
    lines = (_CLASS.sub(lambda match: _CLASSES.get(match[1], ""), line) for line in text.splitlines()[:_MOST_PATTERNS])
    spec = GitIgnoreSpec.from_lines(filter(is_pattern, lines))
    return tuple(
        (_of_itself(_quick(each.regex.pattern)), each.include)
        for each in spec.patterns
        if isinstance(each, RegexPattern) and each.regex is not None and each.include is not None
    )


def _of_itself(pattern: str) -> re.Pattern[str]:
    """The library's expression, which also matches everything below a folder, for the file or `folder/` only.

    Whether a folder is ignored decides over its content; git checks one after the other, and so do we.
    """
    pattern = pattern.replace("(?P<ps_d>/)", r"(?P<ps_d>/)\Z")
    return re.compile(pattern + "." if pattern.endswith("/") else pattern, re.DOTALL)


# A star, and what follows it up to the next one of the same name.
_STAR: Final = re.compile(r"\[\^/\]\*((?:\\.|\[[^\]]*\](?!\*)|[^\\()\[\]/|?*+^$])+)(?=\[\^/\]\*)")
# Each more costs as much again as there are folders above a file.
_MOST_FOLDERS: Final = 2


def _quick(pattern: str) -> str:
    """The same expression without the search through all ways to share a name among several stars.

    The nearest match of what follows a star is as good as any other, as long as another star follows.
    """
    return _STAR.sub(r"(?>[^/]*?\1)", pattern)


def _spec(patterns: Sequence[str]) -> GitIgnoreSpec:
    """The patterns in the order in which they count. Case does not matter where they hide a file."""
    found = []
    for each in GitIgnoreSpec.from_lines([_composed(pattern) for pattern in patterns]).patterns:
        if isinstance(each, RegexPattern) and each.regex is not None:
            flags = each.regex.flags | (re.IGNORECASE if each.include else 0)
            each = type(each)(re.compile(_quick(each.regex.pattern), flags), each.include)  # noqa: PLW2901
        found.append(each)
    return GitIgnoreSpec(found)


# As the operating system follows before it gives up.
_MOST_LINKS: Final = 40
# The beginning of a pattern that names folders without a wildcard.
_LITERAL: Final = re.compile(r"/?((?:[^/*?\[\]\\!#]+/)*[^/*?\[\]\\!#]+)(?:/|$)")


def _composed(text: str) -> str:
    """The text with each accented letter as one character: macOS takes both spellings for the same file."""
    return text if text.isascii() else normalize("NFC", text)


def _spellings(path: Path) -> list[Path]:
    """The path, the same with one more of its links followed each time, and at last without any."""
    target = Path(os.path.realpath(path))
    found = [path]
    while found[-1] != target and len(found) < _MOST_LINKS:
        parts = found[-1].parts
        links = (count for count in range(2, len(parts) + 1) if os.path.islink(Path(*parts[:count])))  # noqa: PTH114
        first = next(links, None)
        if first is None:
            break
        link = Path(*parts[:first])
        try:
            found.append(Path(os.path.normpath(link.parent / os.readlink(link))).joinpath(*parts[first:]))  # noqa: PTH115
        except OSError:
            break
    return found if found[-1] == target else [*found, target]


def _linked(folders: Sequence[Path], patterns: Sequence[str]) -> list[tuple[Path, str]]:
    """Where links lead that patterns name, and how the patterns call that place: `data` may be a link to a disk."""
    found = []
    for pattern in patterns:
        literal = None if pattern.startswith("!") else _LITERAL.match(pattern.strip())
        parts = () if literal is None else tuple(part for part in literal[1].split("/") if part)
        for folder in folders:
            for count in range(1, len(parts) + 1):
                link = folder.joinpath(*parts[:count])
                if os.path.islink(link):  # noqa: PTH114 (which fails for names that no file can have)
                    found.append((Path(os.path.realpath(link)), "/".join(parts[:count])))
    return found


def _inside(path: Path, folder: Path) -> str | None:
    """The path within the folder, as patterns see it; None if it is elsewhere. Case does not matter."""
    length = len(folder.parts)
    if not path.is_relative_to(folder) and [part.casefold() for part in path.parts[:length]] != [
        part.casefold() for part in folder.parts
    ]:
        return None
    return _composed("/".join(path.parts[length:])) or None


def is_pattern(line: str) -> bool:
    """Whether the line is a valid pattern; for git, an invalid one matches nothing."""
    if line.strip("!/*").count("**") > _MOST_FOLDERS:
        return False
    try:
        GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True


class _Names:
    """Patterns in the form of fnmatch, of names or of some folders and a name; case does not matter."""

    def __init__(self, patterns: str) -> None:
        self._patterns = patterns.split()
        each = (f"({translate(pattern).replace('.*', '[^/]*')})" for pattern in self._patterns)
        self._any = re.compile("|".join(each))

    def find(self, name: str) -> str | None:
        """The first pattern that matches; None when none does."""
        match = self._any.fullmatch(name.lower())
        return None if match is None or match.lastindex is None else self._patterns[match.lastindex - 1]


_SECRET: Final = _Names(TABLES["secret_files"]["names"])
_SECRET_DATA: Final = _Names(TABLES["secret_files"]["data"])
_CODE: Final = frozenset(TABLES["secret_files"]["code"].split())
_OLDER: Final = re.compile(TABLES["secret_files"]["older"])
_OLDER_PREFIX: Final = re.compile(TABLES["secret_files"]["older_prefix"])
_SAMPLES: Final = _Names(TABLES["secret_files"]["samples"])
_SECRET_FOLDERS: Final = frozenset(TABLES["secret_files"]["folders"].split())
_SECRET_LANGUAGES: Final = frozenset(TABLES["secret_files"]["languages"].split())
_GENERATED: Final = _Names(TABLES["worthless"]["generated"])
_GENERATED_FOLDERS: Final = frozenset(TABLES["worthless"]["generated_folders"].split())
_BINARY: Final = _Names(TABLES["worthless"]["binary"])


def _versions(name: str) -> Iterable[str]:
    """The name, and the same without what a person or an editor adds to an older version or a copy."""
    bare = _OLDER_PREFIX.sub("", name)
    stem, dot, suffix = bare.rpartition(".")
    return dict.fromkeys(filter(None, (name, bare, _OLDER.sub("", bare), _OLDER.sub("", stem) + dot + suffix)))


@lru_cache(maxsize=4096)
def secret_pattern(path: Path) -> str | None:
    """The pattern by which a file's name says that it holds secrets; None for other files."""
    folder = next((part for part in path.parts[:-1] if part.lower() in _SECRET_FOLDERS), None)
    if folder is not None:
        return f"{folder.lower()}/"
    if not path.parts:
        return None
    # A pattern may include the two nearest parent folders.
    *above, name = path.parts[-3:]
    if _SAMPLES.find(name):
        return None
    for version in _versions(name):
        names = ["/".join((*above[-count:], version)) if count else version for count in range(len(above) + 1)]
        is_code = version.lower().rpartition(".")[2] in _CODE
        pattern = next(filter(None, map(_SECRET.find, names)), None) or (
            None if is_code else _SECRET_DATA.find(version)
        )
        if pattern is not None:
            return pattern
    return None


def generated_by_name(path: Path, folder: Path | None) -> str | None:
    """Why a file is not worth reading, by its name, such as `generated:*.lock`; None when it is.

    Args:
        path: absolute.
        folder: the workspace folder that contains it: only the path below it counts.
    """
    below = path.parts[:-1] if folder is None else path.relative_to(folder).parts[:-1]
    place = next((part for part in below if part in _GENERATED_FOLDERS), None)
    if place is not None:
        return f"generated:{place}/"
    pattern = _GENERATED.find(path.name)
    if pattern is not None:
        return f"generated:{pattern}"
    pattern = _BINARY.find(path.name)
    return None if pattern is None else f"binary:{pattern}"


def content_refusal(text: str, *, wanted: bool = False) -> str | None:
    """Why a text is not worth reading: `too_large`, `binary`, `generated` or `minified`; None when it is.

    `wanted`: the user lets it in even if no person wrote it.
    """
    if len(text) > MAX_BYTES:
        return "too_large"
    head = text[:_HEAD]
    if "\0" in head:
        return "binary"
    if wanted:
        return None
    if PATTERNS["marked"].search(head):
        return "generated"
    lines = text.count("\n") + 1
    return "minified" if len(text) > _LONG_MEAN * 4 and len(text) / lines > _LONG_MEAN else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a file may be read.

    Attributes:
        allowed: a model may see it.
        reason: the rule that forbids it: `secret_file:.env`, `excluded:*.sql` (a pattern of the user's), `gitignored`,
            `generated`, `generated:*.lock`, `minified`, `binary`, `too_large`, `unreadable`, `moved` (the file of an
            open document is gone); empty when allowed.
        wanted: a pattern of the user's lets it in, even if no person wrote it.
    """

    allowed: bool
    reason: str = ""
    wanted: bool = False

    @property
    def asking(self) -> bool:
        """Whether git has yet to say if it ignores the file; until then no model may see it."""
        return self.reason == _ASKING


_ALLOWED: Final = Verdict(allowed=True)
_ASKING: Final = "gitignored:asking"


class Privacy:
    """The rules of one user for some folders. May be used from several threads."""

    def __init__(self, folders: Sequence[Path] = (), settings: PrivacySettings | None = None) -> None:
        self._git = GitIgnore()
        self._updates = -1
        self._contents: dict[Path, tuple[tuple[int, int], str | None]] = {}
        self.update(folders, settings or PrivacySettings())

    def update(self, folders: Sequence[Path], settings: PrivacySettings) -> None:
        """Use other folders or settings from the next call on."""
        # Patterns are relative to the innermost folder that contains a file.
        given = [folder.absolute() for folder in folders]
        # A file may be named by any link on the way to it, whichever the folder was opened by.
        spelled = dict.fromkeys(each for folder in given for each in _spellings(folder))
        ordered = sorted(spelled, key=lambda folder: -len(folder.parts))
        patterns = [pattern for pattern in settings.ignore if is_pattern(pattern)]
        self._updates += 1
        # All at once: another thread must not see the old folders with the new patterns.
        self._rules = (settings, ordered, patterns, _spec(patterns), _linked(given, patterns))

    @property
    def changes(self) -> int:
        """How often the rules changed: settings, folders, and files of patterns such as a .gitignore."""
        return self._updates + self._git.changes

    async def answered(self) -> bool:
        """Wait until git has said what the event loop asked, for a second at most; whether it asked anything."""
        return await self._git.answered()

    def allowed(self, path: Path | None, language_id: str | None = None) -> Verdict:
        """Whether a model may see a file: judged by its name, by that of a link's target, and by its content.

        Waits for git; on an event loop, the verdict is `asking` instead, until `answered`.

        Args:
            path: of the file, which need not exist; None for a document that was never saved.
            language_id: the editor's name for its language.
        """
        if path is None:
            return _refused("secret_file:dotenv") if language_id in _SECRET_LANGUAGES else _ALLOWED
        path = path.absolute()
        try:
            spellings = _spellings(path)
        except (OSError, ValueError):
            return _refused("unreadable")
        reason, wanted = None, False
        for spelling in spellings:
            reason, wanted = self._by_name(spelling, language_id)
            if reason is not None:
                break
        else:
            reason = self._by_content(spellings[-1], wanted=wanted)
        return Verdict(allowed=True, wanted=wanted) if reason is None else _refused(reason)

    def named(self, paths: Sequence[Path], language_id: str | None = None) -> Verdict | None:
        """The refusal of a document that is no local file, by the paths in its URI; None when no rule refuses it."""
        for path in paths:
            reason, wanted = self._by_name(path, language_id)
            if wanted:
                return None
            if reason is not None and not reason.startswith(("generated", "binary")):
                return _refused(reason)
        return None

    @property
    def masks(self) -> bool:
        """Whether secrets are masked; the user can turn it off."""
        return self._rules[0].mask_secrets

    def spans(self, text: str) -> tuple[secrets.Span, ...]:
        """The secrets in the text, as (start, end, kind), ascending and disjoint."""
        return secrets.spans(text) if self.masks else ()

    def _by_name(self, path: Path, language_id: str | None) -> tuple[str | None, bool]:
        """Why a file is refused, and whether the user allows it whatever our rules say."""
        settings, folders, patterns, spec, linked = self._rules
        folder = next((folder for folder in folders if path.is_relative_to(folder)), None)
        # A later pattern of the user's overrides an earlier one, and `!` allows again what any rule refuses.
        inside = next(filter(None, (_inside(path, each) for each in folders)), None) if patterns else None
        result = spec.check_file(inside or _composed(path.relative_to(path.anchor).as_posix()))
        for place, name in linked:
            if path.is_relative_to(place) and not result.include:
                other = spec.check_file("/".join((name, *path.relative_to(place).parts)))
                result = other if other.include else result
        if result.include is not None and result.index is not None:
            return (f"excluded:{patterns[result.index]}" if result.include else None), not result.include
        pattern = secret_pattern(path)
        if pattern is None and language_id in _SECRET_LANGUAGES and not _SAMPLES.find(path.name):
            pattern = language_id
        if pattern is not None:
            return f"secret_file:{pattern}", False
        try:
            if settings.gitignore and self._git.ignores(path, folder):
                return "gitignored", False
        except AskingError:
            return _ASKING, False
        return generated_by_name(path, folder), False

    def _by_content(self, path: Path, *, wanted: bool) -> str | None:
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        except OSError:
            return "unreadable"
        if not stat.S_ISREG(status.st_mode):
            return None if stat.S_ISDIR(status.st_mode) else "unreadable"
        if status.st_size > MAX_BYTES:
            return "too_large"
        state = (status.st_mtime_ns, status.st_size)
        entry = self._contents.get(path)
        if entry is None or entry[0] != state:
            if len(self._contents) >= _KEPT_CONTENTS:
                self._contents.clear()
            entry = (state, _sniff(path))
            self._contents[path] = entry
        return None if wanted and entry[1] in {"generated", "minified"} else entry[1]


def _refused(reason: str) -> Verdict:
    return Verdict(allowed=False, reason=reason)


def _sniff(path: Path) -> str | None:
    try:
        head = read_regular(path, SNIFFED_BYTES)
    except OSError:
        return "unreadable"
    return content_refusal(head.decode("utf-8", errors="replace"))
