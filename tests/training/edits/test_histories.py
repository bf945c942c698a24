"""Stories of commits, out of tiny repositories."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.training.edits.commits import Commits

from calomel.training.edits.histories import MAX_FILES, Teller, commit_story
from calomel.training.edits.source import Source
from calomel.training.edits.story import Story

FILLER = "".join(f"def filler_{n}():\n    return other_{n}\n\n\n" for n in range(8))
CODE = "old_name(1)\n\n\n" + FILLER + "def old_name(x):\n    return x\n\n\nshow(old_name(2))\n"


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


def test_each_file_of_a_commit_has_a_story_and_the_newest_commit_comes_first(repository: Commits) -> None:
    repository.commit("Rename", {"code.py": renamed(CODE), "other.py": renamed(CODE)})
    later = renamed(CODE).replace("filler_3", "third").replace("show(", "third(")
    repository.commit("Say which", {"code.py": later})
    stories, _ = stories_of(repository)
    assert [(story.path, story.states()[-1]) for story in stories] == [
        ("code.py", later),
        ("code.py", renamed(CODE)),
        ("other.py", renamed(CODE)),
    ]
    assert stories_of(repository)[0] == stories


def test_a_merge_is_no_story(repository: Commits) -> None:
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("Rename", {"code.py": renamed(CODE)})
    repository.git("checkout", "-q", "main")
    repository.commit("Add", {"more.py": CODE})
    repository.git("merge", "-q", "--no-ff", "-m", "Join", "side")
    stories, _ = stories_of(repository)
    assert [story.path for story in stories] == ["code.py"]


@pytest.mark.parametrize(
    ("subject", "files", "why"),
    [
        ("Rename", {"vendor/code.py": renamed(CODE)}, "vendored"),
        ('Revert "Rename"', {"code.py": renamed(CODE)}, "mechanical"),
        ("Reformat all", {"code.py": renamed(CODE)}, "mechanical"),
        ("Tidy", {"code.py": CODE.replace("(1)", "( 1 )").replace("(2)", "( 2 )")}, "nothing to foresee"),
        ("Document", {"README.md": "old"}, "no source file"),
        ("Rename", {"code.py": renamed(CODE), **{f"{n}.py": "x = 1\n" for n in range(MAX_FILES)}}, "many files"),
        ("Fix", {"code.py": CODE.replace("old_name(1)", "old_name(3)")}, "one change"),
        ("Fix", {"code.py": CODE.replace("(1)", "(3)").replace("other_5", "another")}, "no intent"),
        ("Rename", {"code.py": renamed(CODE).replace("return x", "return return")}, "does not parse"),
        ("Rename", {"code.py": renamed(CODE).replace("other_7", "measured_line")}, "contaminated"),
        ("Rename", {"code.py": renamed(CODE).replace("(2)", "('AKIA" + 16 * "A" + "')")}, "secret"),
        ("Rename", {"code.py": renamed(CODE) + 1_000 * FILLER}, "large file"),
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
    assert [story.text.count("last_name") for story in stories] == [3]
    assert dropped["commit: contaminated"] == 2


def told_of(before: str, after: str) -> Story | str:
    return commit_story(Source("a.py", "python", before), Source("a.py", "python", after))


def test_what_nobody_can_foresee_is_done_before_the_story() -> None:
    long = "def fresh():\n" + "".join(f"    print('{n}')\n" for n in range(12)) + "\n\n"
    told = told_of(CODE, renamed(CODE).replace("def filler_4", long + "def filler_4"))
    assert isinstance(told, Story)
    assert told.text == CODE.replace("def filler_4", long + "def filler_4")
    assert len(told.changes) == 3


def test_one_line_that_renames_a_name_twice_is_a_story() -> None:
    told = told_of(CODE + "total = first + f(first)\n", CODE + "total = second + f(second)\n")
    assert isinstance(told, Story)
    assert [change.text for change in told.changes] == ["second", "second"]


def test_keywords_and_words_of_comments_tie_nothing_together() -> None:
    after = CODE.replace("    return other_2", "    return None  # faster").replace("other_6", "9  # faster")
    assert told_of(CODE.replace("return other_6", "yield other_6"), after) == "no intent"
