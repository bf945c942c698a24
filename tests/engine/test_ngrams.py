"""A table of what mostly follows the last tokens, beside the network's own distribution."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from calomel.engine import CheckpointError, NgramTable, Request, Transformer
from calomel.engine.memory import TextOrder
from calomel.engine.ngrams import GATE_WEIGHTS, KEPT_SHIFT, LONGEST, NGRAMS_FILE, Following, extended
from tests.engine.conftest import VOCAB, Context, Start

PLAIN = TextOrder(pauses=(), resumes=-1)
# A gate that the table always wins, and one that it never does.
ALWAYS, NEVER = [30.0, *[0.0] * (GATE_WEIGHTS - 1)], [-30.0, *[0.0] * (GATE_WEIGHTS - 1)]
HALF = [0.0] * GATE_WEIGHTS


def arrays(known: dict[tuple[int, ...], int]) -> list[dict[str, np.ndarray]]:
    """The parts of each order, of contexts and the token behind each."""
    orders = []
    for order in range(1, LONGEST + 1):
        rows = sorted((key_of(context), token) for context, token in known.items() if len(context) == order)
        orders.append(
            {
                "contexts": np.array([key for key, _ in rows], dtype=np.uint32),
                "tokens": np.array([token for _, token in rows], dtype=np.uint16),
                "shares": np.full(len(rows), 255, dtype=np.uint8),
                "counts": np.full(len(rows), 32, dtype=np.uint8),
            }
        )
    return orders


def key_of(context: Sequence[int]) -> int:
    key = 0
    for token in reversed(context):
        key = extended(key, token)
    return key >> KEPT_SHIFT


def table(known: dict[tuple[int, ...], int], gate: Sequence[float] = ALWAYS, order: TextOrder = PLAIN) -> NgramTable:
    return NgramTable(arrays(known), gate, order)


def test_the_longest_context_that_is_known_proposes() -> None:
    found = table({(3,): 7, (2, 3): 8, (1, 2, 3): 9})
    assert found.following([5, 1, 2, 3], 4) == Following(9, order=3, share=1.0, count=16.0)
    assert found.following([5, 2, 3], 3) == Following(8, order=2, share=1.0, count=16.0)
    assert found.following([5, 1, 2, 3], 2) is None


def test_a_context_goes_on_before_what_a_prompt_puts_between_text_and_answer() -> None:
    found = table({(1, 2): 9, (2, 6): 8}, order=TextOrder(pauses=(40,), resumes=50))
    prompt = [1, 2, 40, 70, 71, 50]
    assert found.following(prompt, 6) == Following(9, order=2, share=1.0, count=16.0)
    assert found.following([*prompt, 6], 7) == Following(8, order=2, share=1.0, count=16.0)


@pytest.mark.parametrize("token", [4, 2])
def test_a_token_gains_the_gates_share_of_what_it_lacks_and_the_others_keep_their_ratios(token: int) -> None:
    logits = torch.tensor([[0.3, -1.0, 2.0, 0.5, -0.7], [1.0, 2.0, 3.0, 4.0, 5.0]])
    before = logits.softmax(dim=-1)
    table({}, HALF).raise_logits(logits, {0: Following(token, order=1, share=1.0, count=8.0)})
    behind = logits.softmax(dim=-1)
    expected = before.clone()
    expected[0] *= 0.5
    expected[0, token] += 0.5
    torch.testing.assert_close(behind, expected)


def cycle() -> dict[tuple[int, ...], int]:
    """Each token is followed by the next one."""
    return {(token,): (token + 1) % 90 for token in range(90)}


@pytest.mark.parametrize("policy", ["left_to_right", "left_to_right:8", "prefix:0.8", "fixed:1"])
def test_an_answer_follows_a_table_that_always_wins(
    model: Transformer, start: Start, context: Context, policy: str
) -> None:
    engine = start(model, ngrams=table(cycle()))
    answer = engine.submit(Request(context, 12, (12,), policy=policy, max_steps=16)).result(60)
    assert answer.ids == tuple((context[-1] + step) % 90 for step in range(1, 13))
    assert max(answer.log_probs) <= 0
    # Who is sure of the next token reads on behind it: all of the canvas is one step.
    assert policy != "prefix:0.8" or answer.forwards == 1


def test_a_gate_that_never_opens_changes_nothing(model: Transformer, start: Start, context: Context) -> None:
    request = Request(context, 12, (12,), policy="left_to_right")
    alone = start(model).submit(request).result(60)
    beside = start(model, ngrams=table(cycle(), NEVER)).submit(request).result(60)
    assert beside.ids == alone.ids
    assert beside.log_probs == pytest.approx(alone.log_probs, abs=1e-4)


def test_what_is_given_is_judged_by_the_network_alone(model: Transformer, start: Start, context: Context) -> None:
    given = Request(context, given=(3, 1, 4, 1, 5))
    beside = start(model, ngrams=table(cycle())).submit(given).result(60)
    assert beside.log_probs == pytest.approx(start(model).submit(given).result(60).log_probs, abs=1e-5)


def save(folder: Path, known: dict[tuple[int, ...], int], **metadata: str) -> None:
    tensors = {f"{part}.{n}": values for n, each in enumerate(arrays(known), 1) for part, values in each.items()}
    said = {"gate": json.dumps(HALF), "pauses": "[36, 78]", "resumes": "4", **metadata}
    save_file(tensors, folder / NGRAMS_FILE, said)


def test_a_table_is_read_from_a_checkpoints_folder(tmp_path: Path) -> None:
    assert NgramTable.load(tmp_path, VOCAB) is None
    save(tmp_path, {(3,): 7})
    found = NgramTable.load(tmp_path, VOCAB)
    assert found is not None
    assert found.following([1, 3], 2) == Following(7, order=1, share=1.0, count=16.0)
    assert found.order == TextOrder((36, 78), 4)


@pytest.mark.parametrize("damage", ["cut", "vocabulary", "gate", "order"])
def test_a_damaged_table_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    wrong = {"gate": {"gate": "[1.0, NaN]"}, "order": {"resumes": "the end"}}.get(damage, {})
    save(tmp_path, {(3,): VOCAB if damage == "vocabulary" else 7}, **wrong)
    if damage == "cut":
        (tmp_path / NGRAMS_FILE).write_bytes((tmp_path / NGRAMS_FILE).read_bytes()[:-3])
    with pytest.raises(CheckpointError, match="ngrams.table"):
        NgramTable.load(tmp_path, VOCAB)
