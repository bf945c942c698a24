from __future__ import annotations

from calomel.replay.metrics.parse import parse_error_delta


def test_code_that_stops_parsing_counts_as_errors() -> None:
    delta = parse_error_delta("def f():\n    return 1\n", "def f(:\n    return 1\n", "python")
    assert delta is not None
    assert delta > 0


def test_code_that_is_mended_counts_as_errors_less() -> None:
    delta = parse_error_delta("x = (1\n", "x = (1)\n", "python")
    assert delta is not None
    assert delta < 0


def test_a_language_without_a_grammar_has_no_figure() -> None:
    assert parse_error_delta("a", "b", "plaintext") is None
