"""What git ignores is what git says, wherever it keeps its rules."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from calomel.workspace.privacy import GitIgnore, Privacy


class Git:
    """A person's git, with a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, folder: Path, *command: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a", "-c", "protocol.file.allow=always", *command],
            cwd=folder, check=True, capture_output=True,
        )  # fmt: skip


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    home = tmp_path / "home"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return Git(home)


def repository(git: Git, path: Path, *options: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    git(path, "init", "-q", *options)
    return path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def reason(folder: Path, file: Path) -> str:
    write(file, "x = 1\n")
    return Privacy([folder]).allowed(file).reason


def test_patterns_in_the_file_that_the_configuration_names_count(git: Git, tmp_path: Path) -> None:
    root = repository(git, tmp_path / "r")
    write(git.home / "own", "a.py\n")
    git(root, "config", "--global", "core.excludesFile", "~/own")
    assert reason(root, root / "a.py") == "gitignored"
    assert reason(root, root / "b.py") == ""


def test_the_exclusions_of_a_worktree_a_submodule_and_a_separate_folder_count(git: Git, tmp_path: Path) -> None:
    root = repository(git, tmp_path / "r")
    git(root, "commit", "-q", "--allow-empty", "-m", "x")
    write(root / ".git" / "info" / "exclude", "a.py\n")
    git(root, "worktree", "add", "-q", "../tree")
    assert reason(tmp_path / "tree", tmp_path / "tree" / "a.py") == "gitignored"
    outer = repository(git, tmp_path / "outer")
    git(outer, "submodule", "add", "-q", "../r", "inner")
    write(outer / ".git" / "modules" / "inner" / "info" / "exclude", "b.py\n")
    assert reason(outer, outer / "inner" / "b.py") == "gitignored"
    assert reason(outer, outer / "inner" / "c.py") == ""
    apart = repository(git, tmp_path / "apart", "--separate-git-dir", str(tmp_path / "elsewhere"))
    write(tmp_path / "elsewhere" / "info" / "exclude", "c.py\n")
    assert reason(apart, apart / "c.py") == "gitignored"


@pytest.mark.parametrize("installed", [True, False], ids=["git", "no git"])
def test_a_mark_of_unicode_and_classes_of_letters_are_understood(
    git: Git,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    installed: bool,  # noqa: FBT001
) -> None:
    root = repository(git, tmp_path / "r")
    if not installed:
        monkeypatch.setattr(shutil, "which", lambda _name: None)
    write(root / ".gitignore", "\ufefffirst.py\nsecond[[:digit:]].py\n")
    assert reason(root, root / "first.py") == "gitignored"
    assert reason(root, root / "second2.py") == "gitignored"
    assert reason(root, root / "secondd.py") == ""


def test_case_counts_as_the_configuration_says(git: Git, tmp_path: Path) -> None:
    root = repository(git, tmp_path / "r")
    write(root / ".gitignore", "secret.py\n")
    assert reason(root, root / "SECRET.py") == ""
    git(root, "config", "core.ignorecase", "true")
    assert reason(root, root / "SECRET.py") == "gitignored"


def test_the_last_pattern_of_a_large_file_counts(git: Git, tmp_path: Path) -> None:
    root = repository(git, tmp_path / "r")
    write(root / ".gitignore", "# a comment\n" * 100_000 + "a.py\n")
    assert reason(root, root / "a.py") == "gitignored"


def test_a_repository_in_an_ignored_folder_is_ignored_unless_it_is_opened(git: Git, tmp_path: Path) -> None:
    root = repository(git, tmp_path / "r")
    write(root / ".gitignore", "vendor/\n")
    inner = repository(git, root / "vendor" / "inner")
    assert reason(root, inner / "a.py") == "gitignored"
    assert reason(inner, inner / "a.py") == ""
    write(inner / ".gitignore", "b.py\n")
    assert reason(inner, inner / "b.py") == "gitignored"


def test_a_change_of_any_rule_counts_at_once(git: Git, tmp_path: Path) -> None:
    folder = tmp_path / "r" / "inner"
    file = write(folder / "a.py", "x = 1\n")
    privacy = Privacy([folder])
    assert privacy.allowed(file).allowed
    # Another person makes the folder above a repository.
    root = repository(git, tmp_path / "r")
    write(root / ".gitignore", "inner/a.py\n")
    assert privacy.allowed(file).reason == "gitignored"
    write(root / ".gitignore", "inner/b.py\n")
    changes = privacy.changes
    assert privacy.allowed(file).allowed
    assert privacy.changes > changes
    write(git.home / "own", "a.py\n")
    git(root, "config", "--global", "core.excludesFile", "~/own")
    assert privacy.allowed(file).reason == "gitignored"
    write(git.home / "own", "c.py\n")
    assert privacy.allowed(file).allowed
    write(root / ".git" / "info" / "exclude", "a.py\n")
    assert privacy.allowed(file).reason == "gitignored"


def test_a_repository_starts_no_program_and_a_pipe_keeps_nobody_waiting(git: Git, tmp_path: Path) -> None:
    root = repository(git, tmp_path / "r")
    ran = tmp_path / "ran"
    program = write(tmp_path / "program", f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    git(root, "config", "core.fsmonitor", str(program))
    git(root, "config", "core.pager", str(program))
    os.mkfifo(root / ".gitignore")
    began = time.monotonic()
    ignores = GitIgnore()
    assert not ignores.ignores(root / "a.py", root)
    (root / ".gitignore").unlink()
    write(root / ".gitignore", "a.py\n")
    assert ignores.ignores(root / "a.py", root)
    assert time.monotonic() - began < 30
    assert not ran.exists()


def test_a_git_that_hangs_is_left_alone_and_our_own_reading_decides(
    git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(git, tmp_path / "r")
    write(root / ".gitignore", "a.py\n")
    hangs = write(tmp_path / "bin" / "git", "#!/bin/sh\nexec sleep 600\n")
    hangs.chmod(0o755)
    monkeypatch.setenv("PATH", f"{hangs.parent}:{os.environ['PATH']}")
    privacy = Privacy([root])
    assert privacy.allowed(root / "a.py").reason == "gitignored"
    assert privacy.allowed(root / "b.py").allowed


def test_answers_are_right_for_several_threads_at_once(git: Git, tmp_path: Path) -> None:
    root = repository(git, tmp_path / "r")
    write(root / ".gitignore", "odd*.py\n")
    ignores = GitIgnore()
    wrong: list[Path] = []

    def ask(number: int) -> None:
        for at in range(100):
            name = "odd" if at % 2 else "even"
            path = root / f"{name}{number}-{at}.py"
            if ignores.ignores(path, root) != (name == "odd"):
                wrong.append(path)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
