from __future__ import annotations

from calomel.server.admission import Rates


def test_a_client_gets_its_burst_then_its_rate_and_others_are_not_touched() -> None:
    now = [100.0]
    rates = Rates(60, 3, lambda: now[0])
    assert [rates.take("a") for _ in range(3)] == [0, 0, 0]
    assert rates.take("a") == 1.0
    assert rates.take("b") == 0
    now[0] += 0.5
    assert rates.take("a") == 0.5
    now[0] += 0.5
    assert rates.take("a") == 0
    now[0] += 3600
    assert [rates.take("a") for _ in range(4)] == [0, 0, 0, 1.0]


def test_it_does_not_remember_all_who_ever_came() -> None:
    rates = Rates(60, 3, lambda: 0.0)
    for number in range(10_000):
        rates.take(str(number))
    assert len(rates._buckets) <= 4096
