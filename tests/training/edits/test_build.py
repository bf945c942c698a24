from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from tests.training.corpus.conftest import python_source
from tests.training.edits.commits import Commits

from calomel.training.corpus import build as corpora
from calomel.training.corpus.shards import CorpusError, SourceFile, write_shard
from calomel.training.edits import build as edits
from calomel.training.edits.build import EditsConfig, build_edits
from calomel.training.edits.source import Source
from calomel.training.edits.story import Change, Story, read_stories

MIT = "Permission is hereby granted, free of charge, to any person obtaining a copy\n"


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


class Orchard:
    """Stands in for the host of repositories, and has the list of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.list = folder / "repositories.toml"
        self.list.write_text("")
        self.repositories: dict[str, Commits] = {}

    def plant(self, name: str, licence: str = MIT) -> Commits:
        made = self.repositories[name] = Commits(self.folder / f"{name}.git")
        made.commit("Begin", {"LICENSE": licence})
        return made

    def renamed(self, name: str, *files: str) -> None:
        """Plant a repository whose files get a name changed by its last commit."""
        made = self.plant(name)
        for later in (False, True):
            made.commit(
                "Rename" if later else "Add",
                {f"{each}.py": released(Path(each).parts[0], later=later) for each in files},
            )

    def pick(self, name: str, commit: str = "", *, held_out: bool = False) -> None:
        """List a repository."""
        commit = commit or self.repositories[name].head()
        entry = f'[[repository]]\nurl = "https://example.org/them/{name}.git"\ncommit = "{commit}"\nlicense = "MIT"\n'
        self.list.write_text(self.list.read_text() + entry + ("held_out = true\n" if held_out else ""))


@pytest.fixture
def orchard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Orchard:
    folder = tmp_path / "orchard"
    folder.mkdir()
    instead = tmp_path / "gitconfig"
    instead.write_text(f'[url "{folder}/"]\n\tinsteadOf = https://example.org/them/\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(instead))
    return Orchard(folder)


@pytest.fixture
def config(tmp_path: Path, orchard: Orchard) -> EditsConfig:
    """A corpus of pears, secrets held out; repositories as the orchard lists them."""
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
    return EditsConfig(
        corpus=folder,
        out=tmp_path / "out",
        cache=tmp_path / "cache",
        repositories=orchard.list,
        data=data,
        stories=8,
        heldout_stories=10,
    )


def built(config: EditsConfig) -> tuple[list[Story], list[Story]]:
    build_edits(config, report=lambda line: None, makers={"shout": shout, "silent": silent})
    return list(read_stories(config.out / edits.TRAIN)), list(read_stories(config.out / edits.HELDOUT))


def paths(stories: list[Story]) -> set[str]:
    return {story.path.partition("/")[0] for story in stories}


def test_training_and_held_out_stories_come_from_their_own_sources(config: EditsConfig, orchard: Orchard) -> None:
    orchard.renamed("apples", "apple/code")
    orchard.pick("apples")
    orchard.renamed("hidden", "hidden/code")
    orchard.pick("hidden", held_out=True)
    train, heldout = built(config)
    assert paths(train) == {"apple", "pear"}
    assert paths(heldout) == {"hidden", "secret"}
    assert {story.kind for story in train} == {story.kind for story in heldout} == {"commit", "shout"}
    notice = (config.out / corpora.NOTICE).read_text()
    assert "The corpus has pear." in notice
    assert "them/apples" in notice
    held_out_notice = (config.out / corpora.HELDOUT_NOTICE).read_text()
    assert "them/hidden" in held_out_notice
    assert "apples" not in held_out_notice


def test_a_build_gives_the_same_bytes_again_and_leaves_nothing_half_done(config: EditsConfig) -> None:
    built(config)
    again = replace(config, out=config.out.with_name("again"))
    built(again)
    names = sorted(path.name for path in config.out.iterdir())
    assert names == ["NOTICE", "NOTICE.heldout", "heldout-edits.jsonl.zst", "summary.json", "train-edits.jsonl.zst"]
    for name in names:
        assert (config.out / name).read_bytes() == (again.out / name).read_bytes()


def test_the_summary_counts_what_is_there(config: EditsConfig, orchard: Orchard) -> None:
    orchard.renamed("plums", "plum")
    orchard.pick("plums")
    train, heldout = built(config)
    summary = json.loads((config.out / corpora.SUMMARY).read_text())
    assert summary["train"]["stories"] == len(train)
    assert summary["heldout"]["by_kind"] == {"shout": len(heldout)}
    assert summary["train"]["by_kind_and_language"]["commit"] == {"python": 1}
    assert sum(summary["train"]["by_kind_and_language"]["shout"].values()) + 1 == len(train)
    assert summary["failed"] == summary["refused"] == {}


def test_training_stories_hold_no_held_out_text(config: EditsConfig, orchard: Orchard) -> None:
    orchard.renamed("plums", "plum", "hidden")
    orchard.pick("plums")
    orchard.renamed("hidden", "hidden")
    orchard.pick("hidden", held_out=True)
    train, _ = built(config)
    assert {story.path for story in train if story.kind == "commit"} == {"plum.py"}
    assert json.loads((config.out / corpora.SUMMARY).read_text())["dropped"]["commit: held-out duplicate"] == 1


def test_stories_hold_no_measuring_data(config: EditsConfig, orchard: Orchard) -> None:
    orchard.renamed("plums", "plum", "peach")
    orchard.pick("plums")
    measured = "".join(f"def measured_{n}(first_value, second_value, third_value):\n" for n in range(5))
    (config.data / "scenario.py").write_text(measured)
    made = orchard.plant("measured")
    for later in (False, True):
        text = released("quince", later=later) + measured.replace(":\n", ":\n    pass\n")
        made.commit("Rename" if later else "Add", {"quince.py": text})
    orchard.pick("measured")
    train, _ = built(config)
    assert {story.path for story in train if story.kind == "commit"} == {"plum.py", "peach.py"}


def test_stories_of_commits_come_beside_the_others(config: EditsConfig, orchard: Orchard) -> None:
    orchard.renamed("plums", "plum")
    without, _ = built(config)
    orchard.pick("plums")
    train, _ = built(config)
    assert sorted(map(str, without)) == sorted(str(story) for story in train if story.kind != "commit")
    without_commits, _ = built(replace(config, commits=0))
    assert sorted(map(str, without_commits)) == sorted(map(str, without))


def test_a_repository_and_a_language_give_no_more_than_their_part(config: EditsConfig, orchard: Orchard) -> None:
    plums = orchard.plant("plums")
    for kind in ("plum", "peach", "cherry"):
        plums.commit("Add", {f"{kind}.py": released(kind, later=False)})
        plums.commit("Rename", {f"{kind}.py": released(kind, later=True)})
    orchard.pick("plums")
    for capped in (replace(config, commits=80), replace(config, commits=4, repository_share=1.0)):
        train, _ = built(capped)
        assert [story.path for story in train if story.kind == "commit"] == ["cherry.py", "peach.py"]


def test_a_repository_that_may_not_or_cannot_be_read_is_named(config: EditsConfig, orchard: Orchard) -> None:
    plums = orchard.plant("plums", "GNU GENERAL PUBLIC LICENSE\n")
    orchard.pick("plums")
    orchard.plant("gone")
    orchard.pick("gone", "0" * 40)
    built(config)
    summary = json.loads((config.out / corpora.SUMMARY).read_text())
    assert list(summary["refused"]) == [f"git/them/plums@{plums.head()[:12]}"]
    assert list(summary["failed"]) == ["git/them/gone@000000000000"]


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
