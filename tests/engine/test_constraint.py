"""Answers within a constraint, against references that reject by hand."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine.conftest import END, PAIRS, Ask, Context, Naive, Rule, Script, Start, in_turn

from calomel.engine import Request, SamplingParams, Transformer


def test_causal_decisions_within_a_constraint_equal_masked_left_to_right_decoding(
    model: Transformer, ask: Ask, naive: Naive, context: Context
) -> None:
    way, expected = PAIRS.begin(), list[int]()
    while len(expected) < 14:
        logits = naive(model, [*context, *expected], [])[-1]
        allowed = sorted([*PAIRS.follows[way.state], *([END] if way.may_end() else [])])
        token = max(allowed, key=lambda each: float(logits[each]))
        if token == END:
            break
        expected.append(token)
        way.advance((token,))

    how = {"max_new_tokens": 14, "policy": "left_to_right", "constraint": PAIRS}
    result, helped = ask(**how), ask(**how, guess=(*expected[:6], 3, *expected[6:]))

    assert list(result.ids) == list(helped.ids) == expected
    assert helped.forwards < result.forwards


# Automata with a way on, or an end, in every state.
edges = st.dictionaries(st.integers(0, 94), st.integers(0, 4), min_size=1, max_size=6)
rules = st.builds(
    Rule, st.lists(edges, min_size=5, max_size=5).map(tuple), st.sets(st.integers(0, 4), min_size=1).map(frozenset)
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rule=rules,
    policy=st.sampled_from(["threshold:0.9", "prefix:0.8", "threshold:0.0", "fixed:2", "left_to_right"]),
    length=st.integers(1, 9),
    steps=st.integers(1, 9),
    size=st.integers(1, 24),
    least=st.integers(0, 6),
    how=st.builds(
        SamplingParams,
        temperature=st.sampled_from([0.0, 0.7, 1.5]),
        seed=st.integers(0, 3),
        repetition_penalty=st.just(1.3),
        top_p=st.just(0.9),
        top_k=st.just(20),
    ),
)
def test_whatever_is_asked_the_answer_is_allowed(
    ask: Ask, rule: Rule, policy: str, length: int, steps: int, size: int, least: int, how: SamplingParams
) -> None:
    bounds = {"max_new_tokens": size, "min_new_tokens": min(least, size), "max_steps": steps}
    result = ask(canvas_length=length, policy=policy, sampling=how, constraint=rule, **bounds)

    assert rule.accepts(result.ids, whole=result.finish_reason == "stop")
    assert len(result.log_probs) == len(result.ids) <= size


@pytest.mark.parametrize(
    ("script", "rule", "ids", "steps"),
    [
        pytest.param([], PAIRS, None, 99, id="no end before the constraint may end"),
        pytest.param([7] * 30, in_turn([7], [8]), (7, 8), 99, id="an end where the constraint is complete"),
        pytest.param([1, 41, 2, 42, 3, 43], PAIRS, (1, 41, 2, 42, 3, 43), 1, id="all at once where all is right"),
        pytest.param(
            [7] * 10 + [41] + [7] * 30,
            in_turn(*[[30]] * 10, [40, 41], *[[31]] * 10),
            (*[30] * 10, 41, *[31] * 10),
            3,
            id="no step for what is forced",
        ),
    ],
)
@pytest.mark.parametrize("policy", ["threshold:0.9", "left_to_right"])
def test_an_answer_ends_with_its_constraint_and_nowhere_else(
    scripted: Script, start: Start, policy: str, script: list[int], rule: Rule, ids: Context | None, steps: int
) -> None:
    asked = Request((1, 2, 3), 40, 32, min_new_tokens=5, policy=policy, constraint=rule, max_steps=99)

    result = start(scripted(3, script)).submit(asked).result(60)

    assert rule.accepts(result.ids, whole=True)
    assert len(result.ids) == 6 if ids is None else result.ids == ids
    assert result.finish_reason == "stop"
    assert result.steps <= steps
