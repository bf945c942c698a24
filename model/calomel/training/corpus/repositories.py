"""Public git repositories, pinned to a commit: cloned bare with their history, and read without a checkout.

No hook, filter or submodule of a repository runs, and only git's own objects reach the disk.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Annotated, cast

from pydantic import AfterValidator, Field

from calomel.training.corpus.licenses import choose
from calomel.training.corpus.packages import (
    MAX_MEMBER_BYTES,
    MAX_MEMBERS,
    MAX_TOTAL_BYTES,
    ArchiveError,
    FetchError,
    Member,
    load_list,
    run,
    safe_path,
)

DEFAULT_REPOSITORIES = Path(__file__).with_name("repositories.toml")

MAX_REPOSITORIES = 120
# Seconds for a clone.
CLONE_TIMEOUT = 3_600
# Seconds for one query of a clone.
QUESTION_TIMEOUT = 600
# Bytes of the largest file (the pack) that a clone may write.
MAX_PACK_BYTES = 4_000_000_000

_URL = r"^https://[a-z0-9.-]+/[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*\.git$"
_COMMIT = r"^[0-9a-f]{40}$"
# Modes of regular files; links and submodules have others.
_REGULAR = frozenset({"100644", "100755"})

# Variables that the caller's own git commands may have set, and that would point git elsewhere.
_LEAKING = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"})
_GIT = ("git", "-c", "core.hooksPath=/dev/null", "-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=120")


@dataclass(frozen=True, slots=True)
class Repository:
    """One pinned repository: an https URL, 40 hex digits of a commit on its default branch, its SPDX licence.

    A held-out one is only measured on, never trained on.
    """

    url: Annotated[str, Field(pattern=_URL)]
    commit: Annotated[str, Field(pattern=_COMMIT)]
    license: Annotated[str, AfterValidator(choose)]
    held_out: bool = False

    @property
    def name(self) -> str:
        """Owner and name, as in the URL."""
        return self.url.removesuffix(".git").split("/", 3)[3]

    @property
    def key(self) -> str:
        """`git`, the name, and the commit's first digits."""
        return f"git/{self.name}@{self.commit[:12]}"


def load_repositories(path: Path = DEFAULT_REPOSITORIES) -> tuple[Repository, ...]:
    """Read a list of repositories, the held-out ones first; raises PackageListError as `load_list` does."""
    listed = load_list(path, "repository", MAX_REPOSITORIES, Repository)
    return tuple(sorted(listed, key=lambda repository: not repository.held_out))


def fetch_clone(cache: Path, repository: Repository) -> Path:
    """Return the bare clone of a repository, with the history of its default branch, in `git/` under a folder.

    It is cloned only if there is no clone with the pinned commit. Raises FetchError if git fails, the clone is too
    large, or it lacks the commit.
    """
    folder = cache.expanduser() / "git"
    clone = folder / (repository.name.replace("/", "+") + ".git")
    if clone.is_dir() and _has(clone, repository.commit):
        return clone
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="clone-") as landing:
        fresh = Path(landing) / "repository.git"
        kind = ("clone", "--quiet", "--bare", "--template=", "--no-tags", "--single-branch")
        _run((*kind, "--", repository.url, str(fresh)), CLONE_TIMEOUT)
        if not _has(fresh, repository.commit):
            raise FetchError(f"{repository.name}: the default branch does not have {repository.commit}")
        shutil.rmtree(clone, ignore_errors=True)
        fresh.rename(clone)
    return clone


def git(clone: Path, *arguments: str) -> bytes:
    """Return the output of `git` for a bare clone; raise FetchError if it fails."""
    return _run((f"--git-dir={clone}", *arguments), QUESTION_TIMEOUT)


@contextmanager
def objects(clone: Path) -> Iterator[Callable[[str], bytes]]:
    """Yield a function that reads a clone's objects by their hash or by `COMMIT:PATH`, through a single process.

    It raises ArchiveError if there is no such object.
    """
    command = [*_GIT, f"--git-dir={clone}", "cat-file", "--batch"]
    with subprocess.Popen(  # noqa: S603 - a list, no shell
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment()
    ) as process:
        ask, answer = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)

        def read(name: str) -> bytes:
            ask.write(name.encode() + b"\n")
            ask.flush()
            header = answer.readline().rsplit(b" ", 2)
            if len(header) != 3 or not header[2].strip().isdigit():  # noqa: PLR2004 - hash, kind, size
                raise ArchiveError(f"no such object: {name}")
            size = int(header[2])
            content = answer.read(size + 1)
            if len(content) <= size:
                raise ArchiveError(f"git stopped while reading {name}")
            return content[:size]

        yield read


def read_repository(clone: Path, commit: str, wanted: Callable[[str], bool]) -> Iterator[Member]:
    """Yield the regular files at a commit whose path is `wanted`, of at most MAX_MEMBER_BYTES, by path.

    Raises ArchiveError if the tree is over a limit, FetchError if git fails.
    """
    total = 0
    entries = git(clone, "ls-tree", "-r", "-l", "-z", "--full-tree", commit).split(b"\0")[:-1]
    if len(entries) > MAX_MEMBERS:
        raise ArchiveError(f"{clone.name}: {len(entries)} files, at most {MAX_MEMBERS}")
    with objects(clone) as read:
        for entry in entries:
            facts, _, name = entry.partition(b"\t")
            mode, _, oid, size = facts.decode("ascii").split()
            path = safe_path(name.decode("utf-8", errors="replace"))
            # Git does not know the size of objects that a partial clone lacks.
            if mode not in _REGULAR or not size.isdigit() or int(size) > MAX_MEMBER_BYTES or not wanted(path):
                continue
            total += int(size)
            if total > MAX_TOTAL_BYTES:
                raise ArchiveError(f"{clone.name}: more than {MAX_TOTAL_BYTES} bytes of source")
            yield Member(path, read(oid))


def _has(clone: Path, commit: str) -> bool:
    try:
        git(clone, "cat-file", "-e", f"{commit}^{{commit}}")
    except FetchError:
        return False
    return True


def _run(arguments: tuple[str, ...], timeout: int) -> bytes:
    verb = next(argument for argument in arguments if not argument.startswith("-"))
    # Not on Windows, where corpora are not built; this process has no library threads when it forks.
    import resource

    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (MAX_PACK_BYTES, MAX_PACK_BYTES))
    return run([*_GIT, *arguments], f"git {verb}", timeout, env=_environment(), preexec_fn=limit)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _LEAKING}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C"}
