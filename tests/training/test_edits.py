"""The stories of a build of edits: from which sources they come, and what is kept out."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.training.sources import GPL, MIT, Commits, Forge, python_source

from calomel.prompts.parts import Edit
from calomel.training.corpus import build as corpora
from calomel.training.corpus.shards import CorpusError, SourceFile, write_shard
from calomel.training.edits import build as edits
from calomel.training.edits.build import EditsConfig, build_edits
from calomel.training.edits.histories import MAX_FILES, Teller, stories_between
from calomel.training.edits.story import Source, Story, crop, read_stories, sequential, write_stories


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


def test_changes_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlaps"):
        sequential([Edit(0, 3, "a"), Edit(2, 4, "b")])
    with pytest.raises(ValueError, match="not inside"):
        Edit(2, 9, "").apply("short")


LINES = "".join(f"line {number}\n" for number in range(100))


def story(text: str, *changes: Edit) -> Story:
    return Story("rename", "python", "a/b.py", text, changes)


def test_stories_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    told = [story("größe = 1\n", Edit(0, 5, "länge\n")), story("a\r\nb\u2028c\n", Edit(0, 0, ""), Edit(1, 2, "x"))]
    write_stories(tmp_path / "edits.jsonl.zst", told)
    assert list(read_stories(tmp_path / "edits.jsonl.zst")) == told
    assert [path.name for path in tmp_path.iterdir()] == ["edits.jsonl.zst"]


def test_stories_that_are_not_there_are_asked_for_by_their_command(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="calomel edits"):
        list(read_stories(tmp_path / "none.jsonl.zst"))


def test_a_crop_is_whole_lines_anywhere_around_the_changes_and_makes_the_same(tmp_path: Path) -> None:
    at = LINES.index("line 50")
    whole = story(LINES, Edit(at, at + 4, "LINE"), Edit(at, at, "more\nand more\n"), Edit(at + 30, at + 31, ""))
    places = set()
    for seed in range(20):
        cropped = crop(whole, random.Random(seed), 200)
        assert cropped is not None
        assert 150 <= len(cropped.text) <= 200
        head, _, tail = LINES.partition(cropped.text)
        assert head == "" or head.endswith("\n")
        assert [head + state + tail for state in cropped.states()] == list(whole.states())
        places.add(cropped.changes[0].start)
    assert min(places) < 40
    assert max(places) > 120
    assert crop(whole, random.Random(0)) == whole
    far = story(LINES, Edit(0, 1, "x"), Edit(len(LINES) - 5, len(LINES), ""))
    assert crop(far, random.Random(0), 300) is None


HEAD = "import os\n\nLIMIT = 3\n\n\n"
FILLER = "".join(f"def filler_{n}():\n    return {n}\n\n\n" for n in range(12))


def told(before: str, after: str, language: str = "python") -> tuple[list[Story], Counter[str]]:
    path = {"python": "a.py", "go": "a.go"}[language]
    dropped: Counter[str] = Counter()
    stories = list(stories_between(Source(path, language, before), Source(path, language, after), dropped))
    return stories, dropped


def edited(story: Story) -> list[str]:
    return [state[change.start : change.end] for change, state in zip(story.changes, story.states(), strict=False)]


def test_unrelated_hunks_are_stories_of_their_own_or_done_before() -> None:
    before = HEAD + "alpha(1)\n" + FILLER + "alpha(2)\n\n\n" + "beta(x)\nbeta(y)\n" + "single()\n"
    after = before.replace("alpha", "gamma").replace("beta", "delta").replace("single()", "other_call()")
    stories, dropped = told(before, after)
    assert [edited(story) for story in stories] == [["alpha", "alpha"], ["beta", "beta"]]
    assert all("other_call()" in story.text for story in stories)
    assert "gamma(1)" in stories[1].text
    assert stories[1].states()[-1] == after
    assert dropped["commit: hunk of no intent"] == 1


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("call_one(a_value)\n", "call_one( a_value )\n", "commit: formatting hunk"),
        ("call(alpha, beta)\n", "call(\n    alpha,\n    beta,\n)\n", "commit: formatting hunk"),
        ('__version__ = "1.2.3"\n', '__version__ = "1.2.10"\n', "commit: version's number"),
        ("table = 1\n", "table = [\n" + "".join(f"    {n},\n" for n in range(40)) + "]\n", "commit: long hunk"),
    ],
)
def test_what_is_no_edit_to_foresee_is_left_out(old: str, new: str, why: str) -> None:
    stories, dropped = told(old + FILLER, new + FILLER)
    assert stories == []
    assert dropped[why] == 1


def test_other_alphabets_do_not_shift_the_changes() -> None:
    before = "# größe: ü\n" + HEAD + 'größe = "ä"\nshow(größe)\nshow(größe)\n' + FILLER
    (story,), _ = told(before, before.replace("größe = ", "länge = ").replace("(größe)", "(länge)"))
    assert edited(story) == ["größe"] * 3


OTHERS = "".join(f"def filler_{n}():\n    return other_{n}\n\n\n" for n in range(8))
CODE = "old_name(1)\n\n\n" + OTHERS + "def old_name(x):\n    return x\n\n\nshow(old_name(2))\n"


@pytest.fixture
def repository(tmp_path: Path) -> Commits:
    made = Commits(tmp_path / "repository")
    made.commit("Begin", {"code.py": CODE, "vendor/code.py": CODE, "other.py": CODE})
    return made


def stories_of(made: Commits, measured: str = "\0") -> tuple[list[Story], Counter[str]]:
    dropped: Counter[str] = Counter()
    teller = Teller(made.folder / ".git", lambda text: "contaminated" if measured in text else None, dropped, seed=0)
    return list(teller.stories("main", lambda change: True)), dropped


def renamed_of_histories(text: str) -> str:
    return text.replace("old_name", "new_name")


def test_a_commit_that_renames_in_two_places_is_a_story_that_begins_at_the_definition(repository: Commits) -> None:
    repository.commit("Rename", {"code.py": renamed_of_histories(CODE)})
    (story,), _ = stories_of(repository)
    assert (story.kind, story.language, story.path) == ("commit", "python", "code.py")
    assert story.text == CODE
    assert story.states()[-1] == renamed_of_histories(CODE)
    assert [change.start for change in story.changes] == [CODE.index("old_name(x)"), 0, CODE.index("old_name(2)")]


@pytest.mark.parametrize(
    ("subject", "files", "why"),
    [
        ("Rename", {"vendor/code.py": renamed_of_histories(CODE)}, "vendored"),
        ('Revert "Rename"', {"code.py": renamed_of_histories(CODE)}, "mechanical"),
        (
            "Rename",
            {"code.py": renamed_of_histories(CODE), **{f"{n}.py": "x = 1\n" for n in range(MAX_FILES)}},
            "many files",
        ),
        ("Fix", {"code.py": CODE.replace("old_name(1)", "old_name(3)")}, "hunk of no intent"),
        (
            "Rename",
            {"code.py": renamed_of_histories(CODE).replace("return x", "return return")},
            "depends on other changes",
        ),
        ("Rename", {"code.py": renamed_of_histories(CODE).replace("other_7", "measured_line")}, "contaminated"),
        ("Rename", {"code.py": renamed_of_histories(CODE).replace("(2)", "('AKIA" + 16 * "A" + "')")}, "secret"),
        ("Rename", {"code.py": renamed_of_histories(CODE) + 1_000 * OTHERS}, "large file"),
    ],
)
def test_what_teaches_nothing_is_left_out(repository: Commits, subject: str, files: dict[str, str], why: str) -> None:
    repository.commit(subject, files)
    stories, dropped = stories_of(repository, "measured_line")
    assert stories == []
    assert dropped[f"commit: {why}"] == 1


def test_older_versions_are_checked_by_what_is_kept_of_them(repository: Commits) -> None:
    repository.commit("Rename", {"code.py": renamed_of_histories(CODE).replace("other_7", "measured_line")})
    repository.commit(
        "Rename again", {"code.py": renamed_of_histories(renamed_of_histories(CODE)).replace("new_name", "last_name")}
    )
    repository.commit("Rename more", {"code.py": CODE})
    stories, dropped = stories_of(repository, "measured_line")
    assert [story.text.count("last_name") for story in stories] == [3, 0]
    assert all("measured_line" not in state for story in stories for state in story.states())
    assert dropped["commit: contaminated"] == 1
