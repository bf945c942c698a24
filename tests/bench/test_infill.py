"""Held-out files, holes cut into them, and the bench that fills them."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import zstandard

from calomel.bench.holes import (
    KINDS,
    REST_OF_LINE,
    SEVERAL_LINES,
    make_holes,
)
from calomel.bench.infill import InfillOptions, matches, measure_infill, run_infill
from calomel.bench.model import LEFT_TO_RIGHT, Attempt, Contender
from calomel.report.heldout import BenchDataError, HeldoutFile, Hole, read_heldout
from calomel.report.running import Progress

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
