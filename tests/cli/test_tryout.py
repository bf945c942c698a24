from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calomel.cli.fill import bundled_samples

Run = Callable[..., Any]


def test_bundled_samples_have_one_hole_each_in_several_languages() -> None:
    samples = bundled_samples()
    assert 4 <= len(samples) <= 6
    assert {"py", "ts", "go", "rs"} == {sample.path.rpartition(".")[2] for sample in samples}
    assert all(sample.expected and not set("⟦⟧") & set(sample.prefix + sample.suffix) for sample in samples)


def test_model_never_sees_the_expected_text(run: Run, filler: Any) -> None:
    run("try")
    requests = filler.requests[1:]
    for request, sample in zip(requests, bundled_samples(), strict=True):
        assert (sample.prefix, sample.suffix, sample.path) == (
            request.parts.prefix,
            request.parts.suffix,
            request.parts.path,
        )


def test_right_and_wrong_answers_are_told_apart(run: Run, filler: Any) -> None:
    samples = bundled_samples()
    right = [sample.expected for sample in samples]
    filler.answers = ["warm up", right[0], "nonsense", *right[2:]]
    result = run("try")
    assert result.status == 0
    assert len(samples) - 1 == result.out.count("equal to what the author wrote")
    assert f"differs; the author wrote {right[1]}" in result.out
    assert f"{len(samples) - 1} of {len(samples)} answers equal what the author wrote" in result.out


def test_every_sample_shows_confidence_steps_and_time(run: Run, filler: Any) -> None:
    out = run("try").out
    assert len(bundled_samples()) == out.count("confidence 0.75 · 4 tokens in 2 steps (3 forwards) · 12 ms")
    assert out.index("before") < out.index("after")
    assert filler.closed
