"""What git itself says that it ignores: one `git check-ignore` per repository, which runs until its rules change.

Git alone knows all of its rules: `core.excludesFile`, `info/exclude` of a worktree or a submodule, `core.ignorecase`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import shutil
import subprocess
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Final

# A healthy git answers within a millisecond.
_PATIENCE: Final = 1.0
# After git hung or would not start, so long our own rules decide.
_REST: Final = 60.0
_MOST_REPOSITORIES: Final = 8
_KEPT_ANSWERS: Final = 50_000
# A configuration that comes with a folder must not name programs that git starts.
_HARMLESS: Final = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false")
_FIELDS: Final = 4

# When a file was changed, its size, its number, and what kind of file it is.
Stamp = tuple[int, int, int, int] | None


def stamp(path: str) -> Stamp:
    """What tells whether a file has changed; None when there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - asked for every level of every file
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode


def is_regular(state: Stamp) -> bool:
    """Whether it is the stamp of a regular file, or of none."""
    return state is None or S_ISREG(state[3])


class AskingError(Exception):
    """Git has been asked and has not answered yet; only an event loop is told so, which must not wait."""


class _NoAnswerError(Exception):
    """Git ended, hung or was not understood."""


@dataclass(slots=True)
class _Repository:
    """One running git.

    Attributes:
        sources: the files whose change ends it: patterns and configuration outside of the tree.
        stamps: of them, and of the patterns in the tree that it may have read.
    """

    process: subprocess.Popen[bytes]
    sources: tuple[str, ...]
    stamps: dict[str, Stamp]
    answers: dict[str, bool]


class CheckIgnore:
    """Asks git. May be used from several threads."""

    def __init__(self) -> None:
        self._git = shutil.which("git")
        self._repositories: dict[Path, _Repository] = {}
        weakref.finalize(self, _end_all, self._repositories)
        # Paths over which git ended: behind a link, within a submodule.
        self._refused: set[tuple[Path, str]] = set()
        self._lock = threading.Lock()
        self._rests_until: dict[Path, float] = {}
        # What is being asked for event loops, by a thread of its own.
        self._asking: dict[tuple[Path, str], Future[bool | None]] = {}
        self._asker = ThreadPoolExecutor(1, thread_name_prefix="calomel-git")
        # How often the rules of a repository were found to have changed.
        self.changes = 0

    def ignores(self, root: Path, entry: str, patterns: Sequence[tuple[str, Stamp]]) -> bool | None:
        """Whether git ignores a file or folder; None when it does not say.

        Args:
            root: of the repository.
            entry: the path below it, with forward slashes.
            patterns: the files of patterns in the tree that count for it, each with its stamp now.

        Raises AskingError on an event loop, if git has yet to be asked: see `answered`.
        """
        if self._git is None or self._rests_until.get(root, 0.0) > time.monotonic() or (root, entry) in self._refused:
            return None
        if not _on_event_loop():
            return self._asked(root, entry, patterns)
        known = self._known(root, entry, patterns)
        if known is None:
            key = root, entry
            if key not in self._asking:
                asking = self._asking[key] = self._asker.submit(self._asked, root, entry, tuple(patterns))
                asking.add_done_callback(lambda _: self._asking.pop(key, None))
            raise AskingError
        return known

    async def answered(self) -> bool:
        """Wait until git has said what it was asked, or rests; whether it was asked anything."""
        asking = [asyncio.wrap_future(each) for each in tuple(self._asking.values())]
        if asking:
            await asyncio.wait(asking, timeout=_PATIENCE)
        return bool(asking)

    def _known(self, root: Path, entry: str, patterns: Sequence[tuple[str, Stamp]]) -> bool | None:
        """What git has said, if its rules are the same; without the lock, since another thread may hold it and wait."""
        repository = self._repositories.get(root)
        if repository is None or repository.process.poll() is not None or _is_stale(repository, patterns):
            return None
        return repository.answers.get(entry)

    def _asked(self, root: Path, entry: str, patterns: Sequence[tuple[str, Stamp]]) -> bool | None:
        with self._lock:
            try:
                repository = self._repository(root, patterns)
                answer = repository.answers.get(entry)
                if answer is None:
                    if len(repository.answers) >= _KEPT_ANSWERS:
                        repository.answers.clear()
                    answer = repository.answers[entry] = _ask(repository.process, entry)
            except _NoAnswerError:
                _end(self._repositories, root)
                if len(self._refused) >= _KEPT_ANSWERS:
                    self._refused.clear()
                self._refused.add((root, entry))
                return None
            except (subprocess.SubprocessError, TimeoutError, OSError):
                _end(self._repositories, root)
                self._rests_until[root] = time.monotonic() + _REST
                return None
            return answer

    def _repository(self, root: Path, patterns: Sequence[tuple[str, Stamp]]) -> _Repository:
        repository = self._repositories.get(root)
        if repository is not None:
            stale = _is_stale(repository, patterns)
            if not stale and repository.process.poll() is None:
                self._repositories[root] = self._repositories.pop(root)
                return repository
            self.changes += stale
            _end(self._repositories, root)
        while len(self._repositories) >= _MOST_REPOSITORIES:
            _end(self._repositories, next(iter(self._repositories)))
        sources = self._sources(root)
        stamps = {source: stamp(source) for source in sources} | dict(patterns)
        process = subprocess.Popen(  # noqa: S603 (git, as it is installed)
            [*self._command(root), "check-ignore", "--no-index", "--stdin", "-z", "-v", "-n"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=_environment(root), start_new_session=True,
        )  # fmt: skip
        self._repositories[root] = _Repository(process, sources, stamps, {})
        return self._repositories[root]

    def _command(self, root: Path) -> list[str]:
        return [self._git or "git", "-C", str(root), *_HARMLESS]

    def _sources(self, root: Path) -> tuple[str, ...]:
        """Where git reads rules and configuration besides the tree."""
        command = [*self._command(root), "rev-parse", "--path-format=absolute"]
        places = ("info/exclude", "config", "config.worktree")
        output = self._run(root, [*command, *(part for place in places for part in ("--git-path", place))]).splitlines()
        if not output:
            raise OSError("not a repository, or owned by another user")
        config = [*self._command(root), "config", "-z"]
        listed = self._run(root, [*config, "--type=path", "--get-all", "core.excludesfile"]).split("\0")
        origins = self._run(root, [*config, "--show-origin", "--list"]).split("\0")
        files = (each.removeprefix("file:") for each in origins if each.startswith("file:"))
        home = Path.home()
        base = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
        own = (str(home / ".gitconfig"), str(base / "config"), str(base / "ignore"))
        return tuple(dict.fromkeys(str(root / each) for each in (*output, *filter(None, listed), *files, *own)))

    def _run(self, root: Path, command: Sequence[str]) -> str:
        done = subprocess.run(  # noqa: S603 (git, as it is installed)
            command, stdin=subprocess.DEVNULL, capture_output=True, env=_environment(root), timeout=_PATIENCE,
            check=False,
        )  # fmt: skip
        return os.fsdecode(done.stdout)


def _on_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _is_stale(repository: _Repository, patterns: Sequence[tuple[str, Stamp]]) -> bool:
    """Whether the rules of a repository have changed since its git began."""
    return any(stamp(source) != repository.stamps[source] for source in repository.sources) or any(
        repository.stamps.setdefault(path, each) != each for path, each in patterns
    )


def _end(repositories: dict[Path, _Repository], root: Path) -> None:
    repository = repositories.pop(root, None)
    if repository is None:
        return
    process = repository.process
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    process.wait()


def _end_all(repositories: dict[Path, _Repository]) -> None:
    for root in tuple(repositories):
        _end(repositories, root)


def _ask(process: subprocess.Popen[bytes], entry: str) -> bool:
    """The answer of a running git. Raises _NoAnswerError, TimeoutError or OSError."""
    if process.stdin is None or process.stdout is None:
        raise _NoAnswerError
    try:
        process.stdin.write(os.fsencode(entry) + b"\0")
        process.stdin.flush()
    except BrokenPipeError:
        raise _NoAnswerError from None
    received = b""
    until = time.monotonic() + _PATIENCE
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while received.count(b"\0") < _FIELDS:
            if not selector.select(max(0.0, until - time.monotonic())):
                raise TimeoutError
            more = os.read(process.stdout.fileno(), 65_536)
            if not more:
                raise _NoAnswerError
            received += more
    source, _, pattern, name = received.split(b"\0")[:_FIELDS]
    if name != os.fsencode(entry):
        raise _NoAnswerError
    return bool(source) and not pattern.startswith(b"!")


def _environment(root: Path) -> Mapping[str, str]:
    """The user's, without what would lead git to another repository."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or "CONFIG" in name}
    return {**kept, "GIT_CEILING_DIRECTORIES": str(root.parent), "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
