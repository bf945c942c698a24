from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from calomel.workspace.workspace import masked_spans

SECRETS = st.lists(st.tuples(st.integers(0, 1200), st.integers(1, 700)), max_size=4)


@given(secrets=SECRETS, size=st.integers(0, 2500), gap=st.integers(1, 40))
def test_spans_are_where_the_masked_text_differs_with_gaps_of_one_bridged(
    secrets: list[tuple[int, int]], size: int, gap: int
) -> None:
    text = ("a*bc" * size)[:size]
    hidden = {at for start, length in secrets for at in range(start, start + length) if at % gap != 1}
    masked = "".join("*" if at in hidden else character for at, character in enumerate(text))

    different = [at for at in range(size) if text[at] != masked[at]]
    expected: list[tuple[int, int]] = []
    for at in different:
        if expected and at - expected[-1][1] <= 1:
            expected[-1] = (expected[-1][0], at + 1)
        else:
            expected.append((at, at + 1))

    assert masked_spans(text, masked) == tuple(expected)
