from __future__ import annotations

from calomel.bench.neighbour import ROUNDS, beside_neighbour


def test_steps_are_measured_in_turns_alone_and_beside() -> None:
    values = iter([9.0] + ([1.0] * 8 + [3.0] * 8) * ROUNDS)

    found = beside_neighbour(lambda: next(values))

    assert (found.alone, found.beside) == (1.0, 3.0)
    assert found.flat()["step_beside_busy_ratio"] == 3.0
