from __future__ import annotations

import pytest

from calomel.prompts.styles.fence import closed, fence_for, inside


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("a + b\n```", "a + b"),
        ("a + b\n```\nThat adds them.", "a + b"),
        ("    x = 1\n    y = 2\n```\n", "    x = 1\n    y = 2"),
        ("\n```", ""),
        ("```", ""),
        ("```python\na + b\n```", "a + b"),
        ("\n````\na\n````\n", "a"),
        ("a `b` c", "a `b` c"),
        ("a\r\n```", "a"),
        ("x = '```'\ny\n```", "x = '```'\ny"),
    ],
)
def test_the_text_is_what_stands_in_the_block(answer: str, expected: str) -> None:
    assert inside(answer) == expected


@pytest.mark.parametrize(
    ("beginning", "settled"),
    [("a + b", "a + b"), ("a + b\n", "a + b"), ("a + b\n``", "a + b"), ("a\n```", "a"), ("``", ""), ("```py", "")],
)
def test_of_an_unfinished_answer_nothing_is_shown_that_may_become_the_fence(beginning: str, settled: str) -> None:
    assert inside(beginning, whole=False) == settled


@pytest.mark.parametrize("answer", ["a\n```", "```py\na\n```", "```"])
def test_every_beginning_of_an_answer_shows_a_beginning_of_its_text(answer: str) -> None:
    whole = inside(answer)

    assert all(whole.startswith(inside(answer[:end], whole=False)) for end in range(len(answer)))


def test_an_answer_is_over_when_its_block_is_closed() -> None:
    assert not closed("a + b\n")
    assert not closed("```py\na")
    assert closed("a + b\n```")
    assert closed("```py\na\n```\n")


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    assert fence_for("plain") == "```"
    assert fence_for("a ``` b ```` c") == "`````"
