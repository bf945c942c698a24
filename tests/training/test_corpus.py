"""A corpus out of repositories: what comes in, what stays out, and what is said of it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.training.sources import GPL, MIT, Forge, python_source

from calomel.training.corpus.build import CorpusConfig, build_corpus
from calomel.training.corpus.repositories import (
    CALIBRATION_REPOSITORIES,
    RepositoryListError,
    fetch_clone,
    git,
    load_repositories,
)
from calomel.training.corpus.shards import SourceFile, read_lines


def paths(config: CorpusConfig) -> set[str]:
    return {file.path for file in train(config)}


def test_a_repository_that_is_not_there_is_named_and_the_rest_goes_on(forge: Forge, config: CorpusConfig) -> None:
    forge.entry("o/here", forge.commit("o/here", {"LICENSE": MIT, "a.py": python_source("a")}))
    forge.commit("o/moved", {"LICENSE": MIT})
    forge.entry("o/moved", "0" * 40)
    forge.entry("o/gone", "1" * 40)
    failed = build_corpus(config).failed
    assert {key.partition("@")[0] for key in failed} == {"git/o/moved", "git/o/gone"}
    assert paths(config) == {"a.py"}


def test_copies_and_near_copies_are_kept_once(forge: Forge, config: CorpusConfig) -> None:
    text = python_source("a")
    near = text + "extra_line = something_else(1)\n"
    second = {"b.py": text.replace("    ", "\t"), "c.py": near, "own.py": python_source("own")}
    for name, files in (("first", {"a.py": text}), ("second", second)):
        forge.entry(f"o/{name}", forge.commit(f"o/{name}", {"LICENSE": MIT, **files}))
    summary = build_corpus(config)
    assert paths(config) == {"a.py", "own.py"}
    assert (summary.dropped["exact duplicate"], summary.dropped["near duplicate"]) == (1, 1)


def test_the_same_config_gives_the_same_bytes_and_another_seed_another_order(
    forge: Forge, config: CorpusConfig, tmp_path: Path
) -> None:
    many = {f"m{i}.py": python_source(f"m{i}") for i in range(12)}
    forge.entry("o/many", forge.commit("o/many", {"LICENSE": MIT, **many}))
    shards = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        build_corpus(replace(config, out=tmp_path / name, seed=seed))
        shards.append((tmp_path / name / "train.jsonl.zst").read_bytes())
    assert shards[0] == shards[1]
    assert shards[0] != shards[2]


# The sources of the measuring data.
MEASURED = {
    *("reactivex/rxjs", "microsoft/vscode", "microsoft/vscode-copilot-chat", "josephg/editing-traces"),
    *("openai/human-eval", "openai/human-eval-infilling"),
}


def test_files_are_those_of_the_commit_in_every_language_and_credited(forge: Forge, config: CorpusConfig) -> None:
    pinned = forge.commit(
        "o/tool",
        {"LICENSE": MIT, "a.py": python_source("a"), "b/c.go": python_source("c"), "x.txt": python_source("x")},
    )
    forge.commit("o/tool", {"later.py": python_source("later")})
    forge.entry("o/tool", pinned)
    summary = build_corpus(config)
    found = {(file.package, file.language, file.path, file.license) for file in train(config)}
    assert found == {("o/tool", "python", "a.py", "MIT"), ("o/tool", "go", "b/c.go", "MIT")}
    notice = (config.out / "NOTICE").read_text()
    assert "https://example.com/o/tool.git" in notice
    assert pinned in notice
    assert summary.train["by_source"]["o/tool"]["files"] == 2


def test_links_and_what_a_repository_did_not_write_are_left_out(forge: Forge, config: CorpusConfig) -> None:
    forge.commit("o/tool", {"LICENSE": MIT})
    (forge.folder / "o/tool.git/link.py").symlink_to("/etc/passwd")
    files = {"a.py": python_source("a"), "vendor/b.go": python_source("b"), "web/dist/c.js": python_source("c")}
    forge.entry("o/tool", forge.commit("o/tool", files))
    summary = build_corpus(config)
    assert paths(config) == {"a.py"}
    assert (summary.dropped["vendored"], summary.dropped["build output"]) == (1, 1)


def test_a_repository_is_cloned_once_with_its_history(forge: Forge, tmp_path: Path) -> None:
    first = forge.commit("o/tool", {"LICENSE": MIT})
    forge.entry("o/tool", forge.commit("o/tool", {"a.py": "a = 1\n"}))
    (repository,) = load_repositories(forge.list)
    clone = fetch_clone(tmp_path / "cache", repository)
    shutil.rmtree(forge.folder / "o")
    assert fetch_clone(tmp_path / "cache", repository) == clone
    assert first in git(clone, "rev-list", repository.commit).decode()
    assert not (clone / "hooks").exists()


def test_the_checked_in_license_decides(forge: Forge, config: CorpusConfig) -> None:
    text = {"a.py": python_source("a")}
    forge.entry("o/copyleft", forge.commit("o/copyleft", text | {"COPYING": GPL}))
    forge.entry("o/other", forge.commit("o/other", text | {"LICENSE": MIT}), "Apache-2.0")
    forge.entry("o/none", forge.commit("o/none", text))
    forge.entry(
        "o/parts",
        forge.commit(
            "o/parts",
            {"LICENSE-MIT": MIT, "b.py": python_source("b"), "ee/LICENSE": "Ask us.\n", "ee/c.py": python_source("c")},
        ),
    )
    summary = build_corpus(config)
    assert {key.partition("@")[0] for key in summary.refused} == {"git/o/copyleft", "git/o/other", "git/o/none"}
    assert [file.path for file in train(config)] == ["b.py"]
    assert summary.dropped["license"] == 1


def test_held_out_repositories_and_their_near_copies_stay_out_of_training(forge: Forge, config: CorpusConfig) -> None:
    text = python_source("measured", functions=10)
    half = python_source("measured", functions=6) + python_source("other", functions=6)
    files = {"LICENSE": MIT, "copy.py": text, "half.py": half, "own.py": python_source("own")}
    forge.entry("o/trainer", forge.commit("o/trainer", files))
    forge.entry("o/measured", forge.commit("o/measured", {"LICENSE": MIT, "m.py": text}), held_out=True)
    summary = build_corpus(config)
    assert [file.path for file in train(config)] == ["own.py"]
    assert [each["path"] for each in read_lines(config.out / "heldout.jsonl.zst", "")] == ["m.py"]
    assert summary.dropped["held-out duplicate"] == 2
    notice = (config.out / "NOTICE.heldout").read_text()
    assert "o/measured" in notice
    assert "trainer" not in notice


def test_what_is_trained_on_measured_on_and_fitted_on_is_kept_apart() -> None:
    listed = load_repositories()
    assert sum(repository.held_out for repository in listed) == 8
    names = {repository.name.lower() for repository in listed}
    assert not names & MEASURED
    fitted_on = load_repositories(CALIBRATION_REPOSITORIES)
    assert len(fitted_on) == 12
    assert not names & {repository.name.lower() for repository in fitted_on}


@pytest.fixture
def config(tmp_path: Path, forge: Forge) -> CorpusConfig:
    (tmp_path / "data").mkdir()
    return CorpusConfig(tmp_path / "out", tmp_path / "cache", forge.list, tmp_path / "data")


def train(config: CorpusConfig) -> list[SourceFile]:
    return [SourceFile(**each) for each in read_lines(config.out / "train.jsonl.zst", "")]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('[[repository]]\nurl = "https://e.com/--upload-pack/x.git"\ncommit = "{0}"\nlicense = "MIT"', "url"),
        ('[[repository]]\nurl = "https://e.com/o/x.git"\ncommit = "main"\nlicense = "MIT"', "commit"),
        ('[[repository]]\nurl = "https://e.com/o/x.git"\ncommit = "{0}"\nlicense = "GPL-3.0-only"', "not allowed"),
    ],
)
def test_a_bad_entry_of_a_list_is_an_error(tmp_path: Path, entry: str, message: str) -> None:
    path = tmp_path / "list.toml"
    path.write_text(entry.format("0" * 40) + "\n")
    with pytest.raises(RepositoryListError, match=message):
        load_repositories(path)
