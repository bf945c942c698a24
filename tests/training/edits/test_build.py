from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from tests.training.corpus.conftest import make_wheel, python_source
from tests.training.edits.commits import Commits

from calomel.training.corpus.packages import CALIBRATION_LIST, DEFAULT_LIST, FetchError, PackageListError
from calomel.training.corpus.shards import CorpusError, SourceFile, write_shard
from calomel.training.edits import build as edits
from calomel.training.edits.build import EditsConfig, build_edits
from calomel.training.edits.histories import CALIBRATION_RELEASES, DEFAULT_RELEASES, DEFAULT_RELEASES_LOCK, paired
from calomel.training.edits.source import Source
from calomel.training.edits.story import Change, Story, read_stories


def shout(source: Source, rng: random.Random) -> Story | None:
    """A maker: writes one function's name in capitals."""
    nodes = [node for node in source.identifiers() if "_step_" in source.slice(node)]
    start, end = source.span(rng.choice(nodes))
    return Story(
        "shout", source.language, source.path, source.text, (Change(start, end, source.text[start:end].upper()),)
    )


def silent(source: Source, rng: random.Random) -> Story | None:
    return None


def released(name: str, *, later: bool) -> str:
    text = python_source(name) + f"\n\nold_{name}(1)\nshow(old_{name})\n\n\ndef old_{name}(x):\n    return x\n"
    return text.replace(f"old_{name}", f"new_{name}") if later else text


def listed(name: str, version: int, *, held_out: bool = False) -> str:
    entry = f'[[package]]\necosystem = "pypi"\nname = "{name}"\nversion = "{version}"\n'
    return entry + ("held_out = true\n" if held_out else "")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EditsConfig:
    """Packages apple (training) and hidden (held out), each in releases 1 and 2; a corpus of other files."""
    registry = tmp_path / "registry"
    registry.mkdir()
    for name in ("apple", "hidden"):
        for version in (1, 2):
            make_wheel(registry / f"{name}-{version}.whl", {f"{name}/code.py": released(name, later=version == 2)})

    def run(command: list[str], landing: Path) -> None:
        name, _, version = command[-1].partition("==")
        wheel = registry / f"{name}-{version}.whl"
        if not wheel.exists():
            raise FetchError(f"{command[-1]}: no such package")
        (landing / wheel.name).write_bytes(wheel.read_bytes())

    monkeypatch.setattr("calomel.training.corpus.packages.run_client", run)
    for version, name in ((1, "releases.toml"), (2, "packages.toml")):
        (tmp_path / name).write_text(listed("apple", version) + listed("hidden", version, held_out=True))
    folder = tmp_path / "corpus"
    folder.mkdir()
    for shard, split in (("train.jsonl.zst", "pear"), ("heldout.jsonl.zst", "secret")):
        files = [
            SourceFile(split, "pypi", f"{split}/{n}.py", "python", "MIT", python_source(f"{split}{n}"))
            for n in range(4)
        ]
        write_shard(folder / shard, files)
        (folder / ("NOTICE" if split == "pear" else "NOTICE.heldout")).write_text(f"The corpus has {split}.\n")
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "repositories.toml").write_text("")
    return EditsConfig(
        corpus=folder,
        out=tmp_path / "out",
        cache=tmp_path / "cache",
        packages=tmp_path / "packages.toml",
        lock=tmp_path / "lock.json",
        releases=tmp_path / "releases.toml",
        releases_lock=tmp_path / "releases.lock.json",
        repositories=tmp_path / "repositories.toml",
        data=data,
        stories=8,
        heldout_stories=10,
    )


def built(config: EditsConfig) -> tuple[list[Story], list[Story]]:
    build_edits(config, report=lambda line: None, makers={"shout": shout, "silent": silent})
    return list(read_stories(config.out / edits.TRAIN)), list(read_stories(config.out / edits.HELDOUT))


def paths(stories: list[Story]) -> set[str]:
    return {story.path.partition("/")[0] for story in stories}


def test_training_and_held_out_stories_come_from_their_own_packages(config: EditsConfig) -> None:
    train, heldout = built(config)
    assert paths(train) == {"apple", "pear"}
    assert paths(heldout) == {"hidden", "secret"}
    assert {story.kind for story in train} == {story.kind for story in heldout} == {"release", "shout"}


def test_a_build_gives_the_same_bytes_again_and_leaves_nothing_half_done(config: EditsConfig) -> None:
    built(config)
    again = replace(config, out=config.out.with_name("again"))
    built(again)
    names = sorted(path.name for path in config.out.iterdir())
    assert names == ["NOTICE", "NOTICE.heldout", "heldout-edits.jsonl.zst", "summary.json", "train-edits.jsonl.zst"]
    for name in names:
        assert (config.out / name).read_bytes() == (again.out / name).read_bytes()


def test_the_summary_counts_what_is_there(config: EditsConfig) -> None:
    train, _ = built(config)
    summary = json.loads((config.out / edits.SUMMARY).read_text())
    assert summary["train"]["stories"] == len(train)
    assert summary["heldout"]["by_kind"]["release"] == 1
    assert sum(summary["train"]["by_kind_and_language"]["shout"].values()) + 1 == len(train)
    assert summary["failed"] == summary["refused"] == {}


def test_the_notice_names_the_corpus_and_both_releases(config: EditsConfig) -> None:
    built(config)
    notice = (config.out / edits.NOTICE).read_text()
    assert "The corpus has pear." in notice
    assert [line for line in notice.splitlines() if line.startswith(("apple", "hidden"))] == [
        "apple 1",
        "apple 2",
        "hidden 1",
        "hidden 2",
    ]
    assert "apple" not in (config.out / edits.HELDOUT_NOTICE).read_text()


def test_training_stories_hold_no_held_out_text(config: EditsConfig) -> None:
    registry = config.cache.parent / "registry"
    for version in (1, 2):
        text = released("hidden", later=version == 2) + "\n\nalso(1)\n"
        make_wheel(registry / f"apple-{version}.whl", {"apple/code.py": text})
    train, _ = built(config)
    assert paths(train) == {"pear"}
    summary = json.loads((config.out / edits.SUMMARY).read_text())
    assert summary["dropped"]["release: held-out duplicate"] == 1


def test_stories_hold_no_measuring_data(config: EditsConfig) -> None:
    (config.data / "scenario.py").write_text(
        "".join(f"def measured_{n}(first_value, second_value, third_value):\n" for n in range(5))
    )
    registry = config.cache.parent / "registry"
    for version in (1, 2):
        measured = (config.data / "scenario.py").read_text().replace(":\n", ": ...\n")
        text = released("apple", later=version == 2) + measured.replace(": ...", ":\n    pass")
        make_wheel(registry / f"apple-{version}.whl", {"apple/code.py": text})
    train, _ = built(config)
    assert paths(train) == {"pear"}


@pytest.fixture
def plums(config: EditsConfig, monkeypatch: pytest.MonkeyPatch) -> Commits:
    """The repository that the list of `config` names, with a licence and nothing else."""
    folder = config.cache.parent / "plums"
    made = Commits(folder)
    made.commit("Begin", {"LICENSE": "Permission is hereby granted, free of charge, to any person obtaining a copy\n"})
    instead = config.cache.parent / "gitconfig"
    instead.write_text(f'[url "{folder}"]\n\tinsteadOf = https://example.org/them/plums.git\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(instead))
    return made


def list_repository(config: EditsConfig, made: Commits) -> None:
    entry = f'url = "https://example.org/them/plums.git"\ncommit = "{made.head()}"\nlicense = "MIT"\n'
    config.repositories.write_text(f"[[repository]]\n{entry}")


def test_commits_are_training_stories_beside_the_others(config: EditsConfig, plums: Commits) -> None:
    plums.commit("Add", {"plum.py": released("plum", later=False), "same.py": released("hidden", later=False)})
    plums.commit("Rename", {"plum.py": released("plum", later=True), "same.py": released("hidden", later=True)})
    without, _ = built(config)
    list_repository(config, plums)
    train, heldout = built(config)
    assert {story.path for story in train if story.kind == "commit"} == {"plum.py"}
    assert sorted(map(str, without)) == sorted(str(story) for story in train if story.kind != "commit")
    assert "commit" not in {story.kind for story in heldout}
    summary = json.loads((config.out / edits.SUMMARY).read_text())
    assert summary["train"]["by_kind_and_language"]["commit"] == {"python": 1}
    assert summary["dropped"]["commit: held-out duplicate"] == 1
    assert f"commit: {plums.head()}" in (config.out / edits.NOTICE).read_text()
    assert "plums" not in (config.out / edits.HELDOUT_NOTICE).read_text()


def test_a_repository_and_a_language_give_no_more_than_their_part(config: EditsConfig, plums: Commits) -> None:
    for kind in ("plum", "peach", "cherry"):
        plums.commit("Add", {f"{kind}.py": released(kind, later=False)})
        plums.commit("Rename", {f"{kind}.py": released(kind, later=True)})
    list_repository(config, plums)
    for capped in (replace(config, commits=80), replace(config, commits=4, repository_share=1.0)):
        train, _ = built(capped)
        assert [story.path for story in train if story.kind == "commit"] == ["cherry.py", "peach.py"]


def test_a_repository_that_may_not_or_cannot_be_read_is_named(config: EditsConfig, plums: Commits) -> None:
    plums.commit("Relicense", {"LICENSE": "GNU GENERAL PUBLIC LICENSE\n"})
    list_repository(config, plums)
    built(config)
    assert list(json.loads((config.out / edits.SUMMARY).read_text())["refused"]) == [
        f"git/them/plums@{plums.head()[:12]}"
    ]
    config.repositories.write_text(config.repositories.read_text().replace(plums.head(), "0" * 40))
    built(config)
    assert list(json.loads((config.out / edits.SUMMARY).read_text())["failed"]) == ["git/them/plums@000000000000"]


def test_a_release_that_cannot_be_had_is_named_and_the_rest_goes_on(config: EditsConfig) -> None:
    (config.cache.parent / "registry" / "apple-1.whl").unlink()
    train, _ = built(config)
    assert paths(train) == {"pear"}
    assert "pypi/apple@1" in json.loads((config.out / edits.SUMMARY).read_text())["failed"]


def test_a_release_under_another_licence_is_refused(config: EditsConfig) -> None:
    wheel = config.cache.parent / "registry" / "apple-1.whl"
    make_wheel(wheel, {"apple/code.py": released("apple", later=False)}, "GPL-3.0-only")
    train, _ = built(config)
    assert paths(train) == {"pear"}
    assert "pypi/apple@1" in json.loads((config.out / edits.SUMMARY).read_text())["refused"]


def test_the_same_edit_is_kept_once(config: EditsConfig) -> None:
    train, _ = built(replace(config, stories=1_000))
    edited = [
        story.text[change.start : change.end] for story in train if story.kind == "shout" for change in story.changes
    ]
    lines = [story.text[story.text.rfind("\n", 0, c.start) + 1 : c.end] for story in train for c in story.changes]
    assert len(edited) > 8
    assert len(lines) == len(set(lines))


def test_missing_measuring_data_is_said_loudly(config: EditsConfig) -> None:
    summary = build_edits(replace(config, data=config.data / "none"), report=lambda line: None, makers={"shout": shout})
    assert not summary.decontaminated
    assert "NOT DECONTAMINATED" in summary.warnings[0]


def test_what_is_no_corpus_is_refused(config: EditsConfig, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"calomel corpus"):
        build_edits(replace(config, corpus=tmp_path / "nothing"), report=lambda line: None)


@pytest.mark.parametrize(
    ("releases", "message"),
    [
        (listed("plum", 1), "no such package"),
        (listed("apple", 1, held_out=True), "held out in one of"),
        (listed("apple", 2), "the same version"),
    ],
)
def test_a_release_must_belong_to_a_package_of_the_corpus(config: EditsConfig, releases: str, message: str) -> None:
    config.releases.write_text(releases)
    with pytest.raises(PackageListError, match=message):
        built(config)


def test_the_shipped_releases_are_pinned_and_locked() -> None:
    pairs = paired(DEFAULT_LIST, DEFAULT_RELEASES)
    assert len(pairs) >= 40
    for_filters = paired(CALIBRATION_LIST, CALIBRATION_RELEASES)
    assert len(for_filters) >= 10
    locked = {older.key for older, _ in [*pairs, *for_filters]}
    assert locked == set(json.loads(DEFAULT_RELEASES_LOCK.read_text()))
    assert sum(older.held_out for older, _ in pairs) >= 5
