from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from calomel.training.corpus.build import CorpusConfig, build_corpus
from calomel.training.corpus.packages import PackageListError
from calomel.training.corpus.repositories import CALIBRATION_REPOSITORIES, fetch_clone, git, load_repositories
from calomel.training.corpus.shards import SourceFile, read_shard

if TYPE_CHECKING:
    from tests.training.corpus.conftest import Registry

    MakeConfig = Callable[..., CorpusConfig]
    MakeSource = Callable[..., str]

MIT = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software\n"
GPL = "GNU GENERAL PUBLIC LICENSE\nVersion 3\n"

# The sources of the measuring data.
MEASURED = {
    *("reactivex/rxjs", "microsoft/vscode", "microsoft/vscode-copilot-chat", "josephg/editing-traces"),
    *("openai/human-eval", "openai/human-eval-infilling"),
}


class Forge:
    """Stands in for the host of repositories: git is told to clone its URLs from a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: list[str] = []
        (folder / "gitconfig").write_text(
            f'[url "{folder}/"]\n\tinsteadOf = https://example.com/\n'
            "[user]\n\tname = Somebody\n\temail = somebody@example.com\n[init]\n\tdefaultBranch = main\n"
        )

    def run(self, name: str, *arguments: str) -> str:
        command = ["git", "-C", str(self.folder / f"{name}.git"), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, name: str, files: dict[str, str]) -> str:
        """Add files to a repository, which is made where it is missing, and return the commit."""
        root = self.folder / f"{name}.git"
        if not root.exists():
            root.mkdir(parents=True)
            self.run(name, "init", "--quiet")
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        self.run(name, "add", "--all")
        self.run(name, "commit", "--quiet", "-m", "Change files")
        return self.run(name, "rev-parse", "HEAD")

    def entry(self, name: str, commit: str, license_: str = "MIT", *, held_out: bool = False) -> None:
        """List a repository at a commit."""
        url = f"https://example.com/{name}.git"
        entry = f'[[repository]]\nurl = "{url}"\ncommit = "{commit}"\nlicense = "{license_}"\n'
        self.entries.append(entry + ("held_out = true\n" if held_out else ""))

    def list(self) -> Path:
        path = self.folder / "repositories.toml"
        path.write_text("\n".join(self.entries))
        return path


@pytest.fixture
def forge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Forge:
    folder = tmp_path / "forge"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder / "gitconfig"))
    return Forge(folder)


def train(config: CorpusConfig) -> list[SourceFile]:
    return list(read_shard(config.out / "train.jsonl.zst"))


def test_files_are_those_of_the_commit_in_every_language_and_credited(
    forge: Forge, config: MakeConfig, source: MakeSource
) -> None:
    pinned = forge.commit("o/tool", {"LICENSE": MIT, "a.py": source("a"), "b/c.go": source("c"), "x.txt": source("x")})
    forge.commit("o/tool", {"later.py": source("later")})
    forge.entry("o/tool", pinned)
    made = config(repositories=forge.list())
    summary = build_corpus(made)
    found = {(file.ecosystem, file.package, file.language, file.path, file.license) for file in train(made)}
    assert found == {("git", "o/tool", "python", "a.py", "MIT"), ("git", "o/tool", "go", "b/c.go", "MIT")}
    notice = (made.out / "NOTICE").read_text()
    assert "https://example.com/o/tool.git" in notice
    assert pinned in notice
    assert summary.train["by_source"]["git/o/tool"]["files"] == 2


def test_links_and_what_a_repository_did_not_write_are_left_out(
    forge: Forge, config: MakeConfig, source: MakeSource
) -> None:
    (forge.folder / "o/tool.git").mkdir(parents=True)
    forge.run("o/tool", "init", "--quiet")
    (forge.folder / "o/tool.git/link.py").symlink_to("/etc/passwd")
    files = {"LICENSE": MIT, "a.py": source("a"), "vendor/b.go": source("b"), "web/dist/c.js": source("c")}
    forge.entry("o/tool", forge.commit("o/tool", files))
    made = config(repositories=forge.list())
    summary = build_corpus(made)
    assert [file.path for file in train(made)] == ["a.py"]
    assert (summary.dropped["vendored"], summary.dropped["build output"]) == (1, 1)


def test_a_repository_is_cloned_once_with_its_history(forge: Forge, tmp_path: Path) -> None:
    first = forge.commit("o/tool", {"LICENSE": MIT})
    forge.entry("o/tool", forge.commit("o/tool", {"a.py": "a = 1\n"}))
    (repository,) = load_repositories(forge.list())
    clone = fetch_clone(tmp_path / "cache", repository)
    shutil.rmtree(forge.folder / "o")
    assert fetch_clone(tmp_path / "cache", repository) == clone
    assert first in git(clone, "rev-list", repository.commit).decode()
    assert not (clone / "hooks").exists()


def test_the_checked_in_license_decides(forge: Forge, config: MakeConfig, source: MakeSource) -> None:
    text = {"a.py": source("a")}
    forge.entry("o/copyleft", forge.commit("o/copyleft", text | {"COPYING": GPL}))
    forge.entry("o/other", forge.commit("o/other", text | {"LICENSE": MIT}), "Apache-2.0")
    forge.entry("o/none", forge.commit("o/none", text))
    forge.entry(
        "o/parts",
        forge.commit(
            "o/parts",
            {"LICENSE-MIT": MIT, "b.py": source("b"), "ee/LICENSE": "Ask us.\n", "ee/c.py": source("c")},
        ),
    )
    made = config(repositories=forge.list())
    summary = build_corpus(made)
    assert {key.partition("@")[0] for key in summary.refused} == {"git/o/copyleft", "git/o/other", "git/o/none"}
    assert [file.path for file in train(made)] == ["b.py"]
    assert summary.dropped["license"] == 1


def test_copies_are_kept_once_across_kinds_of_sources(
    forge: Forge, registry: Registry, config: MakeConfig, source: MakeSource
) -> None:
    registry.wheel("released", {"a.py": source("a")})
    newer = {"LICENSE": MIT, "src/a.py": source("a") + "extra_line = something_else(1)\n", "own.py": source("own")}
    forge.entry("o/released", forge.commit("o/released", newer))
    made = config(repositories=forge.list())
    summary = build_corpus(made)
    assert {(file.ecosystem, file.path) for file in train(made)} == {("pypi", "a.py"), ("git", "own.py")}
    assert summary.dropped["near duplicate"] == 1


def test_held_out_repositories_and_their_near_copies_stay_out_of_training(
    forge: Forge, registry: Registry, config: MakeConfig, source: MakeSource
) -> None:
    text = source("measured", functions=10)
    half = source("measured", functions=6) + source("other", functions=6)
    registry.wheel("trainer", {"copy.py": text, "own.py": source("own")})
    forge.entry("o/trainer", forge.commit("o/trainer", {"LICENSE": MIT, "half.py": half}))
    forge.entry("o/measured", forge.commit("o/measured", {"LICENSE": MIT, "m.py": text}), held_out=True)
    made = config(repositories=forge.list())
    summary = build_corpus(made)
    assert [file.path for file in train(made)] == ["own.py"]
    assert [file.path for file in read_shard(made.out / "heldout.jsonl.zst")] == ["m.py"]
    assert summary.dropped["held-out duplicate"] == 2
    notice = (made.out / "NOTICE.heldout").read_text()
    assert "o/measured" in notice
    assert "trainer" not in notice


def test_a_corpus_may_be_of_repositories_alone(forge: Forge, config: MakeConfig, source: MakeSource) -> None:
    forge.entry("o/tool", forge.commit("o/tool", {"LICENSE": MIT, "a.py": source("a")}))
    made = config(repositories=forge.list(), packages=None)
    build_corpus(made)
    assert [file.path for file in train(made)] == ["a.py"]


def test_a_commit_that_is_not_there_is_named_and_the_rest_goes_on(
    forge: Forge, config: MakeConfig, source: MakeSource
) -> None:
    forge.commit("o/moved", {"LICENSE": MIT})
    forge.entry("o/moved", "0" * 40)
    forge.entry("o/gone", "1" * 40)
    forge.entry("o/here", forge.commit("o/here", {"LICENSE": MIT, "a.py": source("a")}))
    made = config(repositories=forge.list())
    summary = build_corpus(made)
    assert {key.partition("@")[0] for key in summary.failed} == {"git/o/moved", "git/o/gone"}
    assert [file.path for file in train(made)] == ["a.py"]


def test_the_summary_counts_files_bytes_and_tokens(forge: Forge, config: MakeConfig, source: MakeSource) -> None:
    forge.entry("o/tool", forge.commit("o/tool", {"LICENSE": MIT, "a.py": source("a"), "b.go": source("b")}))
    told: list[str] = []
    made = config(repositories=forge.list())
    build_corpus(made, report=told.append)
    written = json.loads((made.out / "summary.json").read_text())["train"]
    assert written["total"] == written["by_source"]["git/o/tool"]
    assert written["total"]["bytes"] == len(source("a")) + len(source("b"))
    tokens = [tally["tokens"] for tally in written["by_language"].values()]
    assert sum(tokens) == written["total"]["tokens"]
    assert all(0 < count < written["total"]["bytes"] / 2 for count in tokens)
    assert any(line.endswith("training") and f"{written['total']['tokens']:,}" in line for line in told)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (("ssh://example.com/o/x.git", "0" * 40, "MIT"), "url"),
        (("https://example.com/--upload-pack/x.git", "0" * 40, "MIT"), "url"),
        (("https://example.com/o/x.git", "main", "MIT"), "commit"),
        (("https://example.com/o/x.git", "0" * 40, "GPL-3.0-only"), "not allowed"),
    ],
)
def test_a_bad_entry_of_the_list_is_an_error(tmp_path: Path, entry: tuple[str, str, str], message: str) -> None:
    path = tmp_path / "repositories.toml"
    path.write_text('[[repository]]\nurl = "{}"\ncommit = "{}"\nlicense = "{}"\n'.format(*entry))
    with pytest.raises(PackageListError, match=message):
        load_repositories(path)


def test_a_repository_is_listed_once(forge: Forge) -> None:
    forge.entry("o/tool", "0" * 40)
    forge.entry("O/Tool", "1" * 40)
    with pytest.raises(PackageListError, match="listed twice"):
        load_repositories(forge.list())


def test_what_is_trained_on_measured_on_and_fitted_on_is_kept_apart() -> None:
    listed = load_repositories()
    assert sum(repository.held_out for repository in listed) == 8
    names = {repository.name.lower() for repository in listed}
    assert not names & MEASURED
    fitted_on = load_repositories(CALIBRATION_REPOSITORIES)
    assert len(fitted_on) == 12
    assert not names & {repository.name.lower() for repository in fitted_on}
