"""The joint threshold: what is revealed may change, and a whole canvas is read again."""

from __future__ import annotations

import pytest
import torch

from calomel.engine import UnknownPolicyError
from calomel.engine.canvas import Board, Reading
from calomel.engine.reveal import Joint, parse_policy
from calomel.engine.sampling import Choice

MASK = 9


def choice(tokens: list[int], probabilities: list[float]) -> Choice:
    best = torch.tensor(tokens)
    return Choice(best, best, torch.tensor(probabilities).log(), torch.zeros(len(tokens)))


def advance(board: Board, found: Choice, policy: Joint) -> tuple[list[int], bool]:
    columns = range(len(found.token))
    reading = Reading([0], columns, [0] * len(columns), columns, [policy], [False], [True], edits=[policy.edit])
    (snapshot,) = board.advance(found, reading)
    return snapshot.ids, snapshot.revised


def test_a_revealed_token_changes_only_above_its_own_threshold() -> None:
    board = Board(1, 3, mask_token_id=MASK, device=torch.device("cpu"))
    board.clear(0, {})
    policy = Joint(0.6, 0.8)

    assert advance(board, choice([1, 2, 3], [0.7, 0.65, 0.5]), policy) == ([1, 2, MASK], False)
    assert advance(board, choice([4, 5, 6], [0.9, 0.75, 0.1]), policy) == ([4, 2, 6], True)


def test_a_frozen_token_never_changes() -> None:
    board = Board(1, 2, mask_token_id=MASK, device=torch.device("cpu"))
    board.clear(0, {0: 7})

    assert advance(board, choice([1, 2], [0.99, 0.99]), Joint(0.5, 0.0)) == ([7, 2], False)


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("joint", Joint()),
        ("joint:0.7", Joint(0.7)),
        ("joint:0.7/0.5", Joint(0.7, 0.5)),
        ("joint:0.7/0/3", Joint(0.7, 0.0, 3)),
    ],
)
def test_its_three_numbers_are_read(text: str, policy: Joint) -> None:
    assert parse_policy(text).reveal == policy


@pytest.mark.parametrize("text", ["joint:2", "joint:0.5/x", "joint:0.5/0.5/0.5"])
def test_a_wrong_number_is_named(text: str) -> None:
    with pytest.raises(UnknownPolicyError, match="policy 'joint"):
        parse_policy(text)
