"""A misspelt name is put right where it is defined, then wherever it is used."""

from __future__ import annotations

import random
import re

import pytest
from tests.training.edits.told import inserted, told

from calomel.training.edits.typo_fixed import typo_fixed
from calomel.training.edits.typos import misspelt

CASES = {
    "python": "import os\n\nprint(1)\n\n\ndef connect(receiver):\n    os.close(receiver)\n    return receiver.fd\n",
    "typescript": "use();\n\nfunction f(receiver: Port) {\n  close(receiver);\n  return receiver.fd;\n}\n",
    "javascript": "use();\n\nfunction f(receiver) {\n  close(receiver);\n  return receiver.fd;\n}\n",
    "go": "package a\n\nfunc f(receiver Port) int {\n\tstop(receiver)\n\treturn receiver.fd\n}\n",
    "rust": "fn f(receiver: Port) -> u8 {\n    stop(receiver);\n    receiver.fd\n}\n",
}


@pytest.mark.parametrize("language", CASES)
def test_a_name_is_put_right_from_its_definition_on(language: str) -> None:
    text = CASES[language]
    stories = [story for story in told(typo_fixed, language, text) if inserted(story)[0] == "receiver"]
    assert stories
    for story in stories:
        assert inserted(story) == ["receiver"] * 3
        assert "receiver" not in story.text
        assert story.states()[-1] == text
        wrong = story.text[story.changes[0].start : story.changes[0].end]
        assert story.text == text.replace("receiver", wrong)
        assert story.changes[0].start == text.index("receiver")


def test_a_definition_behind_a_use_comes_first() -> None:
    text = "def first():\n    return calculate(1)\n\n\ndef calculate(n):\n    return n\n"
    stories = told(typo_fixed, "python", text)
    assert stories
    for story in stories:
        assert story.changes[0].start > story.text.index("def c")


def test_a_part_of_several_names_is_put_right_in_all_of_them() -> None:
    text = "def a(buffer_size, buffer_name):\n    BUFFER = buffer_size\n    return BUFFER, buffer_name\n"
    stories = [story for story in told(typo_fixed, "python", text, 200) if len(story.changes) == 6]
    assert stories
    assert all(re.search("buffer", story.text, re.IGNORECASE) is None for story in stories)


def test_imported_names_are_spelt_by_others() -> None:
    assert told(typo_fixed, "python", "from pathlib import PurePath\n\nprint(PurePath())\n") == []


def test_a_slip_keeps_the_first_letter_and_changes_little() -> None:
    rng = random.Random(0)
    for word in ("receive", "Separator", "LENGTH", "message_queue", "height"):
        for _ in range(30):
            wrong = misspelt(word, rng)
            if wrong is not None:
                assert wrong != word
                assert wrong[0] == word[0]
                assert abs(len(wrong) - len(word)) <= 1
