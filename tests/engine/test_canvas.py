from __future__ import annotations

import pytest
import torch

from calomel.engine.canvas import Board, Reading, Snapshot
from calomel.engine.reveal import Fixed, RevealPolicy, Threshold
from calomel.engine.sampling import Choice

MASK = 9


@pytest.fixture
def board(device: torch.device) -> Board:
    board = Board(3, 4, mask_token_id=MASK, device=device)
    for slot in range(3):
        board.clear(slot, {})
    return board


def step(
    board: Board,
    tokens: list[int],
    confidences: list[float],
    *,
    slot: int = 1,
    columns: list[int] | None = None,
    policy: RevealPolicy | None = None,
    last: bool = False,
    revise: bool = False,
) -> Snapshot:
    token = torch.tensor(tokens, device=board.device)
    choice = Choice(
        token,
        token,
        torch.tensor(confidences, device=board.device).log(),
        torch.zeros(len(tokens), device=board.device),
    )
    columns = list(range(len(tokens))) if columns is None else columns
    reading = Reading(
        [slot], range(len(tokens)), [0] * len(tokens), columns, [policy or Threshold(0.9)], [last], [revise]
    )
    return board.advance(choice, reading)[0]


def test_a_step_reveals_and_keeps_the_rest_masked(board: Board) -> None:
    snapshot = step(board, [1, 2, 3, 4], [0.95, 0.2, 0.3, 0.99])

    assert snapshot == Snapshot([1, MASK, MASK, 4], [True, False, False, True], revised=False)
    assert board.ids[0].tolist() == [MASK] * 4


def test_what_is_revealed_stays_without_revision(board: Board) -> None:
    step(board, [1, 2, 3, 4], [0.95, 0.2, 0.3, 0.99])

    assert step(board, [7, 7, 7, 7], [0.95] * 4).ids == [1, 7, 7, 4]


def test_revision_takes_the_new_best_token_but_not_of_frozen_positions(board: Board) -> None:
    board.clear(1, {3: 8})
    step(board, [1, 2, 3, 4], [0.95, 0.2, 0.3, 0.99])

    assert step(board, [7, 2, 3, 4], [0.5] * 4, revise=True) == Snapshot(
        [7, 2, MASK, 8], [True, True, False, True], revised=True
    )
    assert step(board, [7, 2, 3, 4], [0.5] * 4, revise=True).revised is False


def test_the_last_step_reveals_everything(board: Board) -> None:
    assert step(board, [1, 2, 3, 4], [0.1] * 4, last=True).ids == [1, 2, 3, 4]


def test_columns_that_were_not_read_stay(board: Board) -> None:
    assert step(board, [5, 6], [0.99, 0.99], columns=[1, 3]).ids == [MASK, 5, MASK, 6]


def test_flips_and_probabilities_are_those_of_the_reveal(board: Board) -> None:
    step(board, [1, 2, 3, 4], [0.2, 0.1, 0.1, 0.1], policy=Fixed(1))
    step(board, [2, 5, 4], [0.1, 0.3, 0.2], columns=[1, 2, 3], policy=Fixed(1))
    step(board, [6, 4], [0.4, 0.5], columns=[1, 3], policy=Fixed(2))

    log_probs, _, flips = board.confidences(1, 4)

    assert board.ids[1].tolist() == [1, 6, 5, 4]
    assert torch.tensor(log_probs).exp().tolist() == pytest.approx([0.2, 0.4, 0.3, 0.5])
    assert flips == [0, 1, 1, 0]


def test_canvases_of_different_policies_are_decided_side_by_side(board: Board) -> None:
    token = torch.tensor([1, 2, 3, 4], device=board.device)
    choice = Choice(
        token, token, torch.tensor([0.6, 0.7, 0.6, 0.7], device=board.device).log(), torch.zeros(4, device=board.device)
    )
    reading = Reading(
        [2, 0], range(4), [0, 0, 1, 1], [0, 1, 0, 1], [Fixed(1), Threshold(0.5)], [False, False], [False, False]
    )

    assert [snapshot.ids[:2] for snapshot in board.advance(choice, reading)] == [[MASK, 2], [3, 4]]


def test_a_position_known_from_outside_is_frozen(board: Board) -> None:
    board.fix(1, 0, 6)

    assert step(board, [1, 2, 3, 4], [0.99] * 4, revise=True).ids == [6, 2, 3, 4]
