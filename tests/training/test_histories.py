"""Real edits, in commits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.training.sources import Commits

from calomel.training.edits.histories import MAX_FILES, Teller, stories_between
from calomel.training.edits.story import Source, Story

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


def renamed(text: str) -> str:
    return text.replace("old_name", "new_name")


def test_a_commit_that_renames_in_two_places_is_a_story_that_begins_at_the_definition(repository: Commits) -> None:
    repository.commit("Rename", {"code.py": renamed(CODE)})
    (story,), _ = stories_of(repository)
    assert (story.kind, story.language, story.path) == ("commit", "python", "code.py")
    assert story.text == CODE
    assert story.states()[-1] == renamed(CODE)
    assert [change.start for change in story.changes] == [CODE.index("old_name(x)"), 0, CODE.index("old_name(2)")]


@pytest.mark.parametrize(
    ("subject", "files", "why"),
    [
        ("Rename", {"vendor/code.py": renamed(CODE)}, "vendored"),
        ('Revert "Rename"', {"code.py": renamed(CODE)}, "mechanical"),
        ("Rename", {"code.py": renamed(CODE), **{f"{n}.py": "x = 1\n" for n in range(MAX_FILES)}}, "many files"),
        ("Fix", {"code.py": CODE.replace("old_name(1)", "old_name(3)")}, "hunk of no intent"),
        ("Rename", {"code.py": renamed(CODE).replace("return x", "return return")}, "depends on other changes"),
        ("Rename", {"code.py": renamed(CODE).replace("other_7", "measured_line")}, "contaminated"),
        ("Rename", {"code.py": renamed(CODE).replace("(2)", "('AKIA" + 16 * "A" + "')")}, "secret"),
        ("Rename", {"code.py": renamed(CODE) + 1_000 * OTHERS}, "large file"),
    ],
)
def test_what_teaches_nothing_is_left_out(repository: Commits, subject: str, files: dict[str, str], why: str) -> None:
    repository.commit(subject, files)
    stories, dropped = stories_of(repository, "measured_line")
    assert stories == []
    assert dropped[f"commit: {why}"] == 1


def test_older_versions_are_checked_by_what_is_kept_of_them(repository: Commits) -> None:
    repository.commit("Rename", {"code.py": renamed(CODE).replace("other_7", "measured_line")})
    repository.commit("Rename again", {"code.py": renamed(renamed(CODE)).replace("new_name", "last_name")})
    repository.commit("Rename more", {"code.py": CODE})
    stories, dropped = stories_of(repository, "measured_line")
    assert [story.text.count("last_name") for story in stories] == [3, 0]
    assert all("measured_line" not in state for story in stories for state in story.states())
    assert dropped["commit: contaminated"] == 1
