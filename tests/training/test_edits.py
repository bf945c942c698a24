"""The stories of a build of edits: from which sources they come, and what is kept out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.training.sources import GPL, MIT, Forge, python_source

from calomel.training.corpus import build as corpora
from calomel.training.corpus.shards import CorpusError, SourceFile, write_shard
from calomel.training.edits import build as edits
from calomel.training.edits.build import EditsConfig, build_edits
from calomel.training.edits.story import Story, read_stories


def released(name: str, *, later: bool) -> str:
    text = python_source(name) + f"\n\nold_{name}(1)\nshow(old_{name})\n\n\ndef old_{name}(x):\n    return x\n"
    return text.replace(f"old_{name}", f"new_{name}") if later else text


@pytest.fixture
def config(tmp_path: Path, forge: Forge) -> EditsConfig:
    """A corpus of pears, secrets held out; repositories as the forge lists them."""
    folder, data = tmp_path / "corpus", tmp_path / "data"
    data.mkdir()
    folder.mkdir()
    for shard, split in (("train.jsonl.zst", "pear"), ("heldout.jsonl.zst", "secret")):
        files = [
            SourceFile(split, "pypi", f"{split}/{n}.py", "python", "MIT", python_source(f"{split}{n}"))
            for n in range(4)
        ]
        write_shard(folder / shard, files)
        (folder / ("NOTICE" if split == "pear" else "NOTICE.heldout")).write_text(f"The corpus has {split}.\n")
    return EditsConfig(folder, tmp_path / "out", tmp_path / "cache", forge.list, data)


def built(config: EditsConfig) -> tuple[list[Story], list[Story]]:
    build_edits(config, report=lambda line: None)
    return list(read_stories(config.out / edits.TRAIN)), list(read_stories(config.out / edits.HELDOUT))


def paths(stories: list[Story]) -> set[str]:
    return {story.path.partition("/")[0] for story in stories}


def test_training_and_held_out_stories_come_from_their_own_sources(config: EditsConfig, forge: Forge) -> None:
    renamed(forge, "apples", "apple/code")
    renamed(forge, "hidden", "hidden/code", held_out=True)
    train, heldout = built(config)
    assert paths(train) == {"apple"}
    assert paths(heldout) == {"hidden"}
    assert {story.kind for story in train} == {story.kind for story in heldout} == {"commit"}
    notice = (config.out / corpora.NOTICE).read_text()
    assert "The corpus has pear." in notice
    assert "them/apples" in notice
    held_out_notice = (config.out / corpora.HELDOUT_NOTICE).read_text()
    assert "them/hidden" in held_out_notice
    assert "apples" not in held_out_notice
    told = summary(config)
    assert (told["train"]["stories"], told["heldout"]["stories"]) == (len(train), len(heldout))
    assert told["train"]["by_kind_and_language"]["commit"] == {"python": 1}
    assert told["failed"] == told["refused"] == {}


def test_a_build_gives_the_same_bytes_again_and_leaves_nothing_half_done(config: EditsConfig) -> None:
    built(config)
    again = replace(config, out=config.out.with_name("again"))
    built(again)
    names = sorted(path.name for path in config.out.iterdir())
    assert names == ["NOTICE", "NOTICE.heldout", "heldout-edits.jsonl.zst", "summary.json", "train-edits.jsonl.zst"]
    for name in names:
        assert (config.out / name).read_bytes() == (again.out / name).read_bytes()


def test_training_stories_hold_no_held_out_text(config: EditsConfig, forge: Forge) -> None:
    renamed(forge, "plums", "plum", "hidden")
    renamed(forge, "hidden", "hidden", held_out=True)
    train, _ = built(config)
    assert {story.path for story in train if story.kind == "commit"} == {"plum.py"}
    assert summary(config)["dropped"]["commit: held-out duplicate"] == 1


def test_stories_hold_no_measuring_data(config: EditsConfig, forge: Forge) -> None:
    renamed(forge, "plums", "plum", "peach")
    measured = "".join(f"def measured_{n}(first_value, second_value, third_value):\n" for n in range(5))
    (config.data / "scenario.py").write_text(measured)
    forge.commit("them/measured", {"LICENSE": MIT})
    for later in (False, True):
        text = released("quince", later=later) + measured.replace(":\n", ":\n    pass\n")
        head = forge.commit("them/measured", {"quince.py": text})
    forge.entry("them/measured", head)
    train, _ = built(config)
    assert {story.path for story in train if story.kind == "commit"} == {"plum.py", "peach.py"}
    found = build_edits(replace(config, data=config.data / "none"), report=lambda line: None)
    assert not found.decontaminated
    assert "NOT DECONTAMINATED" in found.warnings[0]


def test_a_repository_that_may_not_or_cannot_be_read_is_named(config: EditsConfig, forge: Forge) -> None:
    head = forge.commit("them/plums", {"LICENSE": GPL})
    forge.entry("them/plums", head)
    forge.entry("them/gone", "0" * 40)
    built(config)
    assert list(summary(config)["refused"]) == [f"git/them/plums@{head[:12]}"]
    assert list(summary(config)["failed"]) == ["git/them/gone@000000000000"]


def test_what_is_no_corpus_is_refused(config: EditsConfig, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"calomel corpus"):
        build_edits(replace(config, corpus=tmp_path / "nothing"), report=lambda line: None)


def renamed(forge: Forge, name: str, *files: str, held_out: bool = False) -> None:
    """List a repository whose files get a name changed by its last commit."""
    forge.commit(f"them/{name}", {"LICENSE": MIT})
    for later in (False, True):
        changed = {f"{each}.py": released(Path(each).parts[0], later=later) for each in files}
        head = forge.commit(f"them/{name}", changed)
    forge.entry(f"them/{name}", head, held_out=held_out)


def summary(config: EditsConfig) -> Any:
    return json.loads((config.out / corpora.SUMMARY).read_text())
