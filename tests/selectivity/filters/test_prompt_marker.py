from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.prompts.special import ALL
from calomel.selectivity.filters.prompt_marker import prompt_marker

MARKS = [
    *ALL,
    "<|endoftext|>",
    "<|fim_prefix|>",
    "<|file_sep|>",
    "<|im_start|>",
    "<|code_to_edit|>",
    "<|/code_to_edit|>",
    "<|user_cursor_is_here|>",
    "<|editable_region_start|>",
    "<fim_middle>",
    "<fim-suffix>",
    "<PRE>",
    "<EOT>",
    "[SUFFIX]",
    "[/INST]",
    "<｜fim▁hole｜>",  # noqa: RUF001 (as DeepSeek writes it)
    "<start_of_turn>",
    "<NO_CHANGE>",
    "</think>",
    "[MASK]",
]
DROPPED = {
    "a fence around the answer": "x = ├```python\n1\n```┤\n",
    "a fence in an empty file": "├```\nx = 1\n```┤",
    "sides of a conflict": "‸├a→<<<<<<< CURRENT\na\n=======\nb\n>>>>>>> UPDATED┤\n",
    "in the second of two edits": "├a→b┤‸\n├c→<|end|>┤\n",
    "behind letters beyond ASCII": "x = ├'é😀'<|end|>┤\n",
}
KEPT = {
    "a file about prompts": "END = '<|end|>'\nSTOP = ├'<|end|>'┤\n",
    "a comparison": "if a ├< b | c > d┤:\n",
    "bits": "x = ├(a <| b |> c)┤\n",
    "types": "x: ├dict[str, list[int]]┤\n",
    "an index": "x = y├[PREFIX_LENGTH:]┤\n",
    "a docstring with a fence": '"""\n‸├Use:\n```\nf()\n```┤\n"""\n',
}


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_of_a_prompt_is_dropped(mark: str) -> None:
    assert drops(prompt_marker, f"x = ├1 {mark}┤\n")
    assert drops(prompt_marker, f"⌈├x→{mark}y┤\n⌉")


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_other_leftovers_are_dropped(case: str) -> None:
    assert drops(prompt_marker, case)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_code_that_looks_a_little_like_it_stays(case: str) -> None:
    assert not drops(prompt_marker, case)


def test_prose_may_have_fences_and_components_their_tags() -> None:
    assert not drops(prompt_marker, "Example:\n├```python\nx\n```┤\n", "markdown")
    assert not drops(prompt_marker, "return ├<Edit />┤\n", "typescriptreact")
