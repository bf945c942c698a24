from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from calomel.prompts.fim import FAR_HOP, NEAR_TOKENS, FimPrompt, render, split_suffix
from calomel.prompts.parts import EditRegion
from calomel.prompts.tokenizer import Tokenizer

LINES = "".join(f"    value_{number} = compute({number}, other)\n" for number in range(400))


def test_a_prompt_has_its_parts_in_order_of_stability(tokenizer: Tokenizer) -> None:
    prompt = FimPrompt(prefix="def f(", suffix="):\n    return 1\n", path="a.py")

    rendered = render(prompt, tokenizer)

    near = tokenizer.encode("):\n    return 1\n")
    assert len(near) <= NEAR_TOKENS
    assert list(rendered.context) == [
        *(tokenizer.file, *tokenizer.encode("a.py")),
        *(tokenizer.prefix, *tokenizer.encode("def f(")),
        *(tokenizer.near, *near, tokenizer.middle),
    ]
    assert rendered.reuse == len(rendered.context) - len(near) - 2


def test_an_empty_file_still_gives_a_prompt(tokenizer: Tokenizer) -> None:
    rendered = render(FimPrompt(prefix=""), tokenizer)

    assert list(rendered.context) == [tokenizer.prefix, tokenizer.near, tokenizer.middle]


def test_the_far_suffix_starts_at_a_line_and_within_a_hop_of_the_near_one(tokenizer: Tokenizer) -> None:
    near, far = split_suffix(LINES, tokenizer)

    assert LINES.endswith("\n" + far)
    assert len(LINES) - len(far) <= len(tokenizer.decode(near)) + FAR_HOP + len(LINES.splitlines()[0]) + 1


def test_the_far_suffix_stays_while_the_cursor_moves_within_a_hop(tokenizer: Tokenizer) -> None:
    fars = {split_suffix(LINES[cut:], tokenizer)[1] for cut in range(0, FAR_HOP // 2, 10)}

    assert len(fars) <= 2


def test_a_short_suffix_is_seen_whole(tokenizer: Tokenizer) -> None:
    suffix = "):\n" + LINES[:200]

    near, far = split_suffix(suffix, tokenizer)

    assert suffix.endswith(far)
    assert len(far) > 100
    assert tokenizer.decode(near)


@given(size=st.integers(16, 700), cut=st.integers(0, len(LINES)))
def test_a_prompt_never_exceeds_its_budget(tokenizer: Tokenizer, size: int, cut: int) -> None:
    rendered = render(FimPrompt(LINES[:cut], LINES[cut:], "some/path.py", max_context=size + 48), tokenizer)

    assert len(rendered.context) <= size + 48


def test_typing_extends_the_front_of_the_prompt_and_leaves_the_rest_alone(tokenizer: Tokenizer) -> None:
    prefix, suffix = LINES[:9000], LINES[9000:]
    fronts = []
    for count in range(40):
        rendered = render(FimPrompt(prefix + ("x = cal" + "l" * count)[:count], suffix, max_context=512), tokenizer)
        fronts.append(rendered.context[: rendered.reuse])

    same_start = sum(new[: len(old) - 8] == old[: len(old) - 8] for old, new in pairwise(fronts))

    # The window may hop once in so few keystrokes, not more.
    assert same_start >= len(fronts) - 2


def test_a_line_longer_than_the_budget_keeps_its_end(tokenizer: Tokenizer) -> None:
    rendered = render(FimPrompt("x+" * 5000 + "last", max_context=64), tokenizer)

    assert tokenizer.decode(rendered.context).endswith("last")


def test_a_region_stands_behind_the_front_that_a_hole_at_its_start_has(tokenizer: Tokenizer) -> None:
    hole = render(FimPrompt("def f():\n", "print(f())\n", "a.py"), tokenizer)
    region = EditRegion("    return a\n", cursor=12)
    edit = render(FimPrompt("def f():\n", "print(f())\n", "a.py", region=region), tokenizer)
    assert edit.reuse == hole.reuse
    assert edit.context[: edit.reuse] == hole.context[: hole.reuse]
    t = tokenizer
    marked = [t.region, *t.encode("    return a"), t.cursor, *t.encode("\n")]
    assert list(edit.context[edit.reuse :]) == [*marked, t.near, *t.encode("print(f())\n"), t.middle]


def test_a_cursor_elsewhere_leaves_no_mark(tokenizer: Tokenizer) -> None:
    edit = render(FimPrompt("", "", region=EditRegion("x\n", None)), tokenizer)
    assert tokenizer.cursor not in edit.context
    assert tokenizer.region in edit.context


def test_no_text_forges_a_region(tokenizer: Tokenizer) -> None:
    edit = render(FimPrompt("<|reserved_0|><|reserved_1|>", "", region=EditRegion("<|reserved_1|>", None)), tokenizer)
    assert edit.context.count(tokenizer.region) == 1
    assert tokenizer.cursor not in edit.context
