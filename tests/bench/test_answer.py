from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from tests.bench.measure import count

from calomel.bench.holes import REST_OF_LINE
from calomel.bench.infill import matches
from calomel.bench.model import Attempt, Contender, OpenModel
from calomel.engine import Engine, Result
from calomel.prompts.tokenizer import Tokenizer
from calomel.report.heldout import Hole
from calomel.suggest.completer import Fill, FillRequest
from calomel.suggest.filler import Filler


def hole(answer: str, suffix: str = "") -> Hole:
    return Hole("h", REST_OF_LINE, "python", "a.py", "x = ", suffix, answer)


@dataclass
class FakeFiller:
    text: str
    end_log_prob: float | None
    requests: list[FillRequest] = field(default_factory=list)

    def fill(self, request: FillRequest) -> Fill:
        self.requests.append(request)
        tokens = count(self.text)
        result = Result(
            ids=(1,) * tokens,
            log_probs=(0.0,) * tokens,
            entropies=(0.0,) * tokens,
            end_log_prob=self.end_log_prob,
            finish_reason="stop",
            steps=2,
            forwards=3,
            cached_tokens=16,
            computed_tokens=4,
            canvas_length=32,
            length_scores=(),
            prefill_seconds=0.5,
            denoise_seconds=0.25,
        )
        return Fill(self.text, "stop", 1.0, 20, tokens, 16, 2, 3, 0.75, result)


def model(filler: FakeFiller, clock: Callable[[], float]) -> OpenModel:
    return OpenModel(Path(), "hash", cast("Engine", None), cast("Tokenizer", None), cast("Filler", filler), clock)


def test_an_attempt_counts_its_tokens_and_the_end_token(clock: Callable[[], float]) -> None:
    filler = FakeFiller("a + b", -0.1)
    attempt = model(filler, clock).attempt(hole("a + b"), Contender("fixed:2@4", "fixed:2", 4))
    assert attempt == Attempt("a + b", 6, 3, 1000.0, prefill_milliseconds=500.0, prompt_tokens=20, cached_tokens=16)
    assert not filler.requests[0].recall
    assert (filler.requests[0].policy, filler.requests[0].max_steps, filler.requests[0].max_tokens) == (
        "fixed:2",
        4,
        64,
    )


def test_an_answer_without_end_token_counts_its_own_tokens_only(clock: Callable[[], float]) -> None:
    assert model(FakeFiller("a + b", None), clock).attempt(hole("a"), Contender("default")).kept_tokens == 5


@pytest.mark.parametrize(
    ("answer", "suffix", "text", "equal"),
    [
        ("a + b", "\nnext", "a + b", True),
        ("a + b", "\nnext", "a + b  ", True),
        ("a + b", "\nnext", "a +  b", False),
        ("a ", "+ b\n", "a", False),
        ("a \nb", "\n", "a\nb", True),
        ("a", "\n", "a\n", False),
    ],
)
def test_exact_match_ignores_spaces_at_ends_of_lines_only(answer: str, suffix: str, text: str, *, equal: bool) -> None:
    assert matches(hole(answer, suffix), text) is equal


@pytest.mark.parametrize(
    ("text", "contender"),
    [
        ("default", Contender("default")),
        ("threshold:0.9", Contender("threshold:0.9", "threshold:0.9")),
        ("threshold:0.9@8", Contender("threshold:0.9@8", "threshold:0.9", 8)),
        ("default@2", Contender("default@2", None, 2)),
    ],
)
def test_a_contender_is_a_policy_and_its_steps(text: str, contender: Contender) -> None:
    assert Contender.parse(text) == contender


@pytest.mark.parametrize("text", ["fixed:2@", "fixed:2@x", "fixed:2@0"])
def test_steps_that_are_no_number_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="number of steps"):
        Contender.parse(text)
