"""Held-out files, holes cut into them, and the bench that fills them."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import zstandard
from tests.engine.test_attention import whole
from torch.nn import functional as F

from calomel.bench import load, speed
from calomel.bench.bits import bits_per_byte
from calomel.bench.holes import KINDS, REST_OF_LINE, SEVERAL_LINES, make_holes
from calomel.bench.infill import InfillOptions, matches, measure_infill, run_infill
from calomel.bench.keystrokes import run_keystrokes
from calomel.bench.model import LEFT_TO_RIGHT, Attempt, Contender, Served, open_model
from calomel.bench.speed import Bare, SpeedOptions, measure_speed, measure_steps, run_speed
from calomel.engine import Engine
from calomel.families.loading import load_checkpoint
from calomel.prompts.tokenizer import Tokenizer
from calomel.report.heldout import BenchDataError, HeldoutFile, Hole, read_heldout
from calomel.report.running import Progress
from calomel.weights import nano_path

_PIECE = re.compile(r"\w+|\s+|[^\w\s]")


def count(text: str) -> int:
    return len(_PIECE.findall(text))


@pytest.mark.parametrize("content", [b"no zstandard", zstandard.compress(b"{no json"), zstandard.compress(b"{}\n")])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "damaged.zst"
    path.write_bytes(content)
    with pytest.raises(BenchDataError, match="is damaged"):
        read_heldout(path)


Files = tuple[HeldoutFile, ...]


def holes(files: Files, kind: str | None = None, seed: int = 1, per_kind: int = 40) -> list[Hole]:
    made = make_holes(files, count, per_kind=per_kind, seed=seed)
    return [hole for hole in made if kind in {None, hole.row}]


@dataclass
class Right:
    """Right under every policy but left to right, which is wrong in Go, and slower."""

    weights_hash: str = "w"
    asked: list[tuple[str, str]] = field(default_factory=list)
    verifiable: bool = True
    decoding: tuple[str, int] = ("default", 1)

    def measure(self, text: str) -> int:
        return count(text)

    def attempt(self, hole: Hole, contender: Contender) -> Attempt:
        if contender.name == "prime":
            assert hole.max_tokens == 1
            return Attempt("", 1, 1, 101.0, prefill_milliseconds=100.0)
        self.asked.append((hole.key, contender.name))
        if contender.name == LEFT_TO_RIGHT:
            return Attempt("wrong" if hole.language == "go" else hole.answer, 5, 5, 50.0)
        return Attempt(hole.answer, 6, 2, 20.0)


@pytest.fixture
def options(heldout: Path) -> InfillOptions:
    return InfillOptions(heldout=heldout, holes_per_kind=8)


def test_the_quality_bench_measures_a_checkpoint(checkpoint: Path, heldout: Path) -> None:
    options = InfillOptions(model=checkpoint, threads=1, heldout=heldout, holes_per_kind=2)
    flat = run_infill(options).flat
    assert [flat[f"{kind}.exact_match_n"] for kind in KINDS] == [2] * 5
    assert [flat[f"{kind}.exact_match_left_to_right_n"] for kind in KINDS] == [2] * 5
    # Left to right every token, the end token too, costs one forward.
    assert flat["tokens_per_forward_left_to_right"] == 1.0


def test_bits_a_byte_are_those_of_the_causal_mode(checkpoint: Path, files: Files) -> None:
    with open_model(checkpoint, threads=1) as model:
        assert bits_per_byte(model, files) is None
    told = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps({**told, "max_position_embeddings": 4096}))
    text = "".join(f"value_{number} = {number} * other\n" for number in range(200))
    file = replace(files[0], text=text)
    with open_model(checkpoint, threads=1) as model:
        found = bits_per_byte(model, [file, files[1]])
        read, predicted = (model.tokenizer.encode(part) for part in (text[:200], text[200:3_200]))
        assert isinstance(model.tokenizer, Tokenizer)
        ids = [model.tokenizer.prefix, *read, *predicted]
    shown = load_checkpoint(checkpoint, dtype=torch.float32)
    logits = whole(shown, ids).clone()
    logits[:, shown.config.diffusion.mask_token_id] = -torch.inf
    nats = F.cross_entropy(logits[len(read) : -1], torch.tensor(predicted), reduction="sum")

    assert found is not None
    assert found.n == 1
    assert found.value == pytest.approx(float(nats) / math.log(2) / 3_000, rel=0.01)


def test_holes_are_cut_out_of_files_of_every_kind_and_language_alike(files: Files) -> None:
    made = holes(files)
    assert made == holes(files)
    assert made != holes(files, seed=2)
    counts = Counter((hole.row, hole.language) for hole in made)
    assert counts == {(kind, language): 20 for kind in KINDS for language in ("go", "python")}
    # The beginning of a run holds all of them.
    assert len({(hole.row, hole.language) for hole in made[: 2 * len(KINDS)]}) == 2 * len(KINDS)
    texts = {file.path: file.text for file in files}
    for hole in made:
        assert hole.prefix + hole.answer + hole.suffix == texts[hole.path or ""]
        assert hole.answer.strip()
        assert count(hole.answer) <= (96 if hole.row == SEVERAL_LINES else 24)
    # Lines that nobody typed are left alone.
    text = "x = 1\n" + "y = " + "+".join(["value"] * 100) + "\nz = 3\n"
    short = make_holes((HeldoutFile("p", "a.py", "python", text),), count, per_kind=30, seed=1)
    assert short
    assert not [hole for hole in short if "value" in hole.answer]


def test_every_row_is_told_for_the_policy_and_left_to_right_and_kept(
    options: InfillOptions, progress: Progress, tmp_path: Path
) -> None:
    right: Any = Right()
    report = measure_infill(options, right, progress)
    # They take turns at being first.
    assert [name for _, name in right.asked[::2]] == ["default", LEFT_TO_RIGHT] * 20
    report.write(json_path=tmp_path / "o.json", results=tmp_path / "results")
    flat = json.loads((tmp_path / "o.json").read_text())
    for row in KINDS:
        assert (flat[f"{row}.exact_match"], flat[f"{row}.exact_match_n"]) == (1.0, 8)
        assert flat[f"{row}.exact_match_left_to_right"] == 0.5
        assert flat[f"{row}.go.exact_match_left_to_right"] == 0.0
        assert flat[f"{row}.python.exact_match_left_to_right"] == 1.0
    assert (flat["tokens_per_forward"], flat["vs_left_to_right"]) == (3.0, 0.4)
    assert flat["vs_left_to_right_cold"] == pytest.approx(0.8)
    assert flat["rest_of_line.exact_match_low"] == pytest.approx(0.6756, abs=1e-4)
    assert flat["rest_of_line.exact_match_high"] == 1.0
    page = (tmp_path / "results" / "bench-infill.md").read_text()
    assert page.startswith("# bench infill\n")
    for name in ("command", "commit", "cpu"):
        assert flat[name] in page
    # A second run asks nothing again, but other weights anew.
    for weights, asked in (("w", 0), ("other", 80)):
        again: Any = Right(weights)
        flat = measure_infill(options, again, progress).flat
        assert len(again.asked) == asked
        assert flat["rest_of_line.exact_match"] == 1.0
        assert flat.get("resumed_records", 0) == (0 if asked else 40)


@pytest.mark.parametrize(
    ("answer", "suffix", "text", "equal"),
    [
        ("a + b", "\nnext", "a + b  ", True),
        ("a + b", "\nnext", "a +  b", False),
        ("a ", "+ b\n", "a", False),
        ("a \nb", "\n", "a\nb", True),
        ("a", "\n", "a\n", False),
    ],
)
def test_exact_match_ignores_spaces_at_ends_of_lines_only(answer: str, suffix: str, text: str, *, equal: bool) -> None:
    assert matches(Hole("h", REST_OF_LINE, "python", "a.py", "x = ", suffix, answer), text) is equal


@dataclass
class Stopwatch:
    """Remembers prompts: cold ones take 1,000 ms more; left to right takes 10 ms a token, ours 40 ms in all."""

    asked: list[tuple[str, int]] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    weights_hash: str = "w"
    verifiable: bool = True
    engine: Any = field(default_factory=lambda: SimpleNamespace(config=SimpleNamespace(max_position_embeddings=1024)))

    def measure(self, text: str) -> int:
        return count(text)

    def attempt(self, hole: Hole, contender: Contender, context: int) -> Attempt:
        self.asked.append((contender.name, context))
        causal = contender.name == LEFT_TO_RIGHT
        cold = (hole.path or "") not in self.known
        self.known.add(hole.path or "")
        time = 10.0 * hole.max_tokens if causal else 40.0
        return Attempt(
            text="",
            milliseconds=time + 1000.0 * cold,
            kept_tokens=hole.max_tokens,
            forwards=hole.max_tokens if causal else 4,
            prompt_tokens=context,
            cached_tokens=0 if cold else context - 8,
        )


@pytest.fixture
def options_of_speed() -> SpeedOptions:
    return SpeedOptions(contexts=(64, 128), answers=(8, 32), cases=3)


@pytest.fixture
def long_files(files: Files) -> Files:
    return tuple(replace(file, text=file.text * 4) for file in files)


def test_cold_and_warm_are_told_for_both(options_of_speed: SpeedOptions, long_files: Files, progress: Progress) -> None:
    subject: Any = Stopwatch()
    flat = measure_speed(options_of_speed, subject, long_files, progress).flat
    assert (flat["64.32.cold_p50_ms"], flat["64.32.warm_p50_ms"]) == (1040.0, 40.0)
    assert (flat["64.32.cold_p50_ms_left_to_right"], flat["64.32.warm_p95_ms_left_to_right"]) == (1320.0, 320.0)
    assert (flat["128.32.warm_p50_ms"], flat["128.32.warm_p50_ms_n"]) == (40.0, 3)
    # Tokens count that were kept.
    assert (flat["64.32.tokens_per_forward"], flat["64.32.tokens_per_second"]) == (8.0, 800.0)
    assert flat["64.32.tokens_per_second_left_to_right"] == 100.0
    assert (flat["tokens_per_forward"], flat["vs_left_to_right"]) == (5.0, 0.2)
    late = measure_speed(replace(options_of_speed, seconds=-1.0), subject, long_files, progress).flat
    assert (late["left_out"], late["vs_left_to_right"]) == ("64.8, 64.32, 128.8, 128.32", None)


def test_the_speed_bench_measures_a_checkpoint(checkpoint: Path, heldout: Path) -> None:
    options_of_speed = SpeedOptions(
        model=checkpoint, threads=1, heldout=heldout, contexts=(128, 2048), answers=(8,), cases=2
    )
    flat: Any = run_speed(options_of_speed).flat
    assert flat["128.8.warm_p50_ms_n"] == 2
    assert flat["128.8.cached_tokens"] > 64
    assert flat["left_out"] == "2k context"
    assert flat["peak_memory_mib"] > 0


def test_a_step_is_measured_beside_what_it_reads_and_multiplies(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "STEP_CONTEXTS", (64, 10**6))
    with open_model(checkpoint, threads=1) as model:
        flat: Any = measure_steps(model)
        assert isinstance(model.engine, Engine)
        weights = model.engine.decoder.weights
    assert {name.split("_")[1] for name in flat} == {"64"}
    assert flat["step_64_8_ms"] > 0
    assert flat["step_64_8_mmul"] >= flat["step_64_1_mmul"] >= round(weights / 1e6, 1)
    assert flat["step_64_8_mb"] == flat["step_64_1_mb"] >= round(weights * 2 / 1e6, 1)


def test_the_bare_forward_tells_what_the_engine_tells(checkpoint: Path) -> None:
    network = load_checkpoint(checkpoint)
    window = network.config.sliding_window or 0
    for size in (window - 1, window + 5, 3 * window + 2):
        ids = [token % 200 for token in range(3, 3 + size)]
        torch.testing.assert_close(Bare(network, compiled=False)(ids), whole(network, ids, read=[size - 1])[0])


PLACE = load.Place("before", "behind", "typed")


def test_places_have_about_the_context_that_was_asked_for() -> None:
    places = load.make_places(6, 1000, read_heldout(), seed=3)
    assert all(1500 < len(place.prefix) + len(place.suffix) <= 3000 for place in places)
    assert len({place.prefix for place in places}) == 6
    assert all(place.typed for place in places)
    assert places == load.make_places(6, 1000, read_heldout(), seed=3)


def test_a_server_that_is_not_there_is_an_error_of_each_request(tmp_path: Path) -> None:
    gone = Served("http://127.0.0.1:9", "token", 1, tmp_path / "log")
    found = asyncio.run(load.crowd(gone, [PLACE, PLACE], 0.0))
    assert (found.errors, found.rejected, len(found.asked)) == (2, 0, 2)


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.skipif(not (nano_path() / "model.safetensors").exists(), reason="no weights")
def test_the_bench_runs_and_leaves_nothing_behind() -> None:
    flat: Any = load.run_load(load.LoadOptions(clients=4, context=256, minutes=0.1, max_requests=8, quick=True)).flat
    assert (flat["errors"], flat["rejected"], flat["places_left"]) == (0, 0, 0)
    assert flat["files_left"] <= 0
    assert flat["throughput"] > 0
    assert flat["cached_share"] > 0.5
    assert flat["person_most_ms"] is not None


@pytest.mark.e2e
@pytest.mark.slow
def test_keystrokes_are_measured_through_the_real_programs() -> None:
    figures: Any = run_keystrokes(quick=True).flat
    for name in ("change_p50_ms", "change_p99_ms", "suggest_2k_p50_ms", "suggest_8k_p50_ms", "suggest_8k_p95_ms",
                 "initialize_ms", "first_suggestion_ms"):  # fmt: skip
        assert figures[name] > 0, name
    assert 0.9 < figures["prefix_reuse"] <= 1
    for name in ("prefix_reuse_settled", "prefix_reuse_jump"):
        assert 0 <= figures[name] <= 1, name
