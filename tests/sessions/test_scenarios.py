from __future__ import annotations

from pathlib import Path

import pytest
from tests.sessions.scenario import EDITORS, FOLDER, Scenario, Verdict, added, parsed, read, scenarios

# What a person does that people were hurt by; a scenario's name begins with it, or holds it.
KINDS = ("rename", "type", "signature", "undo", "redo", "reload", "checkout", "crlf", "mixed", "tabs", "emoji", "cjk")
MORE_KINDS = ("string", "comment", "paste", "cursors", "complete", "secrets", "tab-", "jump", "import")


def made(head: str = "", body: str = "") -> Scenario:
    text = f"About it.\nfile: a.py\n{head}-- before --\nold = 1\n{body}"
    return parsed("x", text)


@pytest.mark.parametrize("editor", EDITORS)
def test_there_are_enough_of_them_and_of_every_kind(editor: str) -> None:
    names = [each.name for each in scenarios(editor)]
    assert len(names) >= 40
    if editor == "neovim":
        assert [kind for kind in KINDS + MORE_KINDS if not any(kind in name for name in names)] == []


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txtar")), ids=lambda path: path.stem)
def test_each_says_what_it_is_about_and_looks_for_something(path: Path) -> None:
    scenario = read(path)
    assert scenario.steps
    looks = {"follow", "silent"} & {step.name for step in scenario.steps}
    assert looks or scenario.must or scenario.must_not or scenario.after is not None


def test_an_offer_is_held_against_the_lists() -> None:
    scenario = made(body="-- must --\nnew = *\n-- may --\nprint(new)\n-- must not --\n*newnew*\n")
    verdict = Verdict()
    verdict.add(scenario, ["    new = 2", "print(new)"])
    verdict.close(scenario, "")
    assert verdict.wrong == []
    verdict.add(scenario, ["other()"])
    verdict.add(scenario, ["newnew()"], ghost=True)
    verdict.add(scenario, ["anything()"], ghost=True)
    assert verdict.wrong == ["offered, and listed nowhere: other()", "must not be offered: newnew()"]
    assert (verdict.offers, verdict.must, verdict.must_not) == (4, {"new = 2"}, {"newnew()"})


def test_what_must_come_and_does_not_is_said_and_so_is_another_end() -> None:
    scenario = made(body="-- must --\nnew = 2\n-- after --\nnew = 2\n")
    verdict = Verdict()
    verdict.close(scenario, "old = 1\n")
    assert verdict.wrong == ["must be offered: new = 2", "in the end the file holds\nold = 1\nnot\nnew = 2\n"]


def test_brackets_and_question_marks_stand_for_themselves() -> None:
    scenario = made(body="-- may --\na[0] = b?\n")
    verdict = Verdict()
    verdict.add(scenario, ["a[0] = b?"])
    assert verdict.wrong == []
    verdict.add(scenario, ["a0 = bc"])
    assert len(verdict.wrong) == 1


def test_steps_are_read_with_their_text_as_it_stands() -> None:
    steps = made(body="-- steps --\nreplace 3 old new one\ntype a\\n\\tb \nundo\n").steps
    assert [(step.name, step.words, step.text) for step in steps] == [
        ("replace", ("3", "old"), "new one"),
        ("type", (), "a\n\tb "),
        ("undo", (), ""),
    ]


@pytest.mark.parametrize("body", ["-- steps --\nfly\n", "-- maybe --\n"])
def test_what_it_does_not_know_is_an_error(body: str) -> None:
    with pytest.raises(ValueError, match=r"no step|maybe"):
        made(body=body)


def test_line_ends_are_those_it_names() -> None:
    assert made("ends: crlf\n").before == "old = 1\r\n"
    assert made("ends: mixed\n", "two␍\n").before == "old = 1\ntwo\r\n"


def test_lines_that_were_there_before_are_not_added() -> None:
    assert added("a\nb\n", "a\nc\nb\nb\n") == ["c", "b"]
