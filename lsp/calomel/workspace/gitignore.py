"""What git ignores: every .gitignore from the root of the repository down, read again when it changes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from pathspec import GitIgnoreSpec, RegexPattern

_State = tuple[int, int, int] | None
# Patterns in the order of their file, each with whether it ignores what it matches.
_Rules = tuple[tuple[re.Pattern[str], bool], ...]
_Level = tuple[_State, _Rules]

_MAX_BYTES: Final = 1_000_000
_DEEPEST: Final = 64
_NOTHING: Final[_Level] = (None, ())


class GitIgnore:
    """Answers as `git check-ignore` does for files that are not tracked. May be asked from several threads.

    Patterns above a workspace folder count inside of it, too, but cannot ignore the folder as a whole: whoever opens
    a folder wants to work in it.
    """

    def __init__(self) -> None:
        self._levels: dict[Path, _Level] = {}
        self._roots: dict[tuple[Path, Path | None], Path | None] = {}
        self._folders: dict[Path, tuple[tuple[_State, ...], bool]] = {}

    def ignores(self, path: Path, folder: Path | None) -> bool:
        """Whether git would ignore the file.

        Args:
            path: absolute; need not be there.
            folder: of the workspace, in which it lies.
        """
        root = self._root(path.parent, folder)
        if root is None:
            return False
        parts = path.relative_to(root).parts
        places = [root, *(root.joinpath(*parts[:depth]) for depth in range(1, len(parts)))]
        general = [self._level(root / ".git" / "info" / "exclude"), self._level(_users_own())]
        levels = [self._level(place / ".gitignore") for place in places]
        if not any(rules for _, rules in (*general, *levels)):
            return False
        opened = 0 if folder is None or not folder.is_relative_to(root) else len(folder.relative_to(root).parts)
        states = tuple(state for state, _ in (*general, *levels))
        known = self._folders.get(places[-1])
        if known is None or known[0] != states:
            known = (states, any(_excluded(parts[:d], levels, general, "/") for d in range(opened + 1, len(parts))))
            self._folders[places[-1]] = known
        return known[1] or _excluded(parts, levels, general, "")

    def _root(self, place: Path, folder: Path | None) -> Path | None:
        """The root of the repository; without one, the workspace folder."""
        if (place, folder) not in self._roots:
            above = [place, *place.parents][:_DEEPEST]
            self._roots[place, folder] = next((each for each in above if (each / ".git").exists()), folder)
        return self._roots[place, folder]

    def _level(self, file: Path) -> _Level:
        try:
            found = os.stat(file)  # noqa: PTH116 - asked for every level of every file
        except (OSError, ValueError):
            return _NOTHING
        state = (found.st_mtime_ns, found.st_size, found.st_ino)
        known = self._levels.get(file)
        if known is None or known[0] != state:
            known = (state, _read(file) if found.st_size <= _MAX_BYTES else ())
            self._levels[file] = known
        return known


def _excluded(parts: tuple[str, ...], levels: list[_Level], general: list[_Level], end: str) -> bool:
    """Whether patterns match the file or folder itself; the closest .gitignore that says something decides."""
    for depth in range(min(len(parts), len(levels)) - 1, -1, -1):
        said = _last(levels[depth][1], "/".join(parts[depth:]) + end)
        if said is not None:
            return said
    whole = "/".join(parts) + end
    return next((said for _, rules in general if (said := _last(rules, whole)) is not None), False)


def _last(rules: _Rules, entry: str) -> bool | None:
    return next((ignored for pattern, ignored in reversed(rules) if pattern.search(entry)), None)


def _users_own() -> Path:
    """Where git looks for the patterns of a user who configured no other place."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")  # noqa: PTH111, PTH118
    return Path(base, "git", "ignore")


def _read(file: Path) -> _Rules:
    try:
        if not file.is_file():
            return ()
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    spec = GitIgnoreSpec.from_lines(filter(is_pattern, lines))
    return tuple(
        (_of_itself(each.regex.pattern), each.include)
        for each in spec.patterns
        if isinstance(each, RegexPattern) and each.regex is not None and each.include is not None
    )


def _of_itself(pattern: str) -> re.Pattern[str]:
    """The library's expression, which holds for whatever is below a folder, too, for the file or `folder/` alone.

    Whether a folder is ignored decides over what is in it; git asks for one after the other, and so do we.
    """
    pattern = pattern.replace("(?P<ps_d>/)", r"(?P<ps_d>/)\Z")
    return re.compile(pattern + "." if pattern.endswith("/") else pattern, re.DOTALL)


def is_pattern(line: str) -> bool:
    """Whether the line can be read; git takes a broken one for one that matches nothing."""
    try:
        GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True
