from __future__ import annotations

from calomel.bench.replicas import Answered, Run, figures


def answered(client: int, keys: int, began: float, ended: float, text: str = "x", status: int = 200) -> Answered:
    return Answered(client, keys, began, ended, status, text, 100, 90)


def test_times_are_told_apart_by_when_the_replica_was_killed_and_replaced() -> None:
    answers = [
        answered(0, 1, 0.0, 0.1),
        answered(0, 2, 0.9, 2.9),
        answered(1, 1, 1.5, 1.7),
        answered(1, 2, 5.0, 5.3),
        answered(1, 3, 5.3, 5.4, status=503),
    ]
    status = {"retried": 1, "lost": 0, "doubled": 0, "restarts": 1}
    one = {(0, 1): answers[0], (0, 2): answered(0, 2, 0, 0, "other"), (1, 1): answers[2], (1, 2): answers[3]}
    found = figures(Run(answers, 1.0, 4.0, status), one)
    assert (found["answers_before"], found["answers_during"], found["answers_after"]) == (1, 2, 1)
    assert (found["p50_before_ms"], found["longest_during_ms"], found["p50_after_ms"]) == (100.0, 2000.0, 300.0)
    assert (found["killed_requests"], found["retried"], found["lost"], found["doubled"]) == (1, 1, 1, 0)
    assert (found["differing"], found["whole_again_seconds"]) == (1, 3.0)
    assert (found["cached_share"], found["cached_share_one"]) == (0.9, 0.9)
