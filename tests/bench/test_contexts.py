from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from calomel.bench import contexts, copying
from calomel.bench.answer import Contender
from calomel.bench.context_summary import supported
from calomel.bench.contexts import measure_contexts, run_contexts
from calomel.bench.copying import NAMES, copy_cases
from calomel.bench.heldout import HeldoutFile
from calomel.bench.holes import KINDS, Hole, make_holes
from calomel.bench.infill import InfillOptions
from calomel.bench.model import PlainMeasure
from calomel.bench.progress import Progress
from calomel.bench.replier import Reply
from calomel.bench.surroundings import Surroundings
from calomel.context.counter import EstimateCounter, TokenCounter
from calomel.prompts.parts import PromptParts


@dataclass
class Scripted:
    """Right in contexts of at most `reach` tokens."""

    reach: int = 8192
    counter: TokenCounter = field(default_factory=EstimateCounter)
    asked: list[tuple[Hole, PromptParts, int]] = field(default_factory=list)

    def room(self, size: int, hole: Hole) -> int:
        return size - hole.max_tokens

    def reply(self, parts: PromptParts, hole: Hole, contender: Contender, budget: int) -> Reply:
        self.asked.append((hole, parts, budget))
        return Reply(hole.answer if budget <= self.reach else "wrong", budget, 0, 0.5)


@pytest.fixture
def options(heldout: Path, tmp_path: Path) -> InfillOptions:
    return InfillOptions(
        heldout=heldout,
        cache=tmp_path / "cache",
        holes_per_kind=4,
        contexts=(2048, 8192, 32_768),
        command="calomel bench infill --context 2K",
    )


@pytest.fixture
def hole(files: tuple[HeldoutFile, ...]) -> Hole:
    return next(hole for hole in make_holes(files, PlainMeasure(), per_kind=4, seed=1) if hole.language == "python")


def test_the_same_holes_are_asked_at_every_size(options: InfillOptions, progress: Progress) -> None:
    flat = measure_contexts(options, Scripted(), PlainMeasure(), progress, weights="w").flat
    assert [flat[f"exact_match_{size}"] for size in ("2k", "8k", "32k")] == [1.0, 1.0, 0.0]
    assert [flat[f"exact_match_{size}_n"] for size in ("2k", "8k", "32k")] == [4 * len(KINDS)] * 3
    assert flat["exact_match_32k_minus_2k"] == -1.0
    assert flat["rest_of_line.exact_match_8k"] == 1.0


def test_names_are_copied_from_far_away(options: InfillOptions, progress: Progress) -> None:
    scripted = Scripted(reach=32_768)
    flat = measure_contexts(options, scripted, PlainMeasure(), progress, weights="w").flat
    assert flat["copy_30k"] == 1.0
    assert flat["copy_30k_n"] == contexts.COPY_GROUPS * NAMES
    distance = flat["copy_30k_distance"]
    assert isinstance(distance, int)
    assert 29_500 < distance < 31_000
    far = [(hole, parts) for hole, parts, budget in scripted.asked if hole.row == "copy_30k"]
    for hole, parts in far:
        name = hole.prefix.split()[-1] + hole.answer
        assert name in parts.related[0].text
        assert not any(name in excerpt.text for excerpt in parts.related[1:])


def test_the_supported_context_is_the_longest_without_a_loss() -> None:
    sizes = (2048, 8192, 32_768)
    assert supported({"exact_match_2k": 0.5, "exact_match_8k": 0.495, "exact_match_32k": 0.6}, sizes) == 32_768
    assert supported({"exact_match_2k": 0.5, "exact_match_8k": 0.4, "exact_match_32k": 0.6}, sizes) == 2048
    assert supported({"exact_match_2k": None, "exact_match_8k": None, "exact_match_32k": None}, sizes) == 2048


def test_what_was_asked_is_not_asked_again(options: InfillOptions, progress: Progress) -> None:
    first = measure_contexts(options, Scripted(), PlainMeasure(), progress, weights="w")
    again = Scripted()
    second = measure_contexts(options, again, PlainMeasure(), progress, weights="w")
    assert again.asked == []
    assert second.flat["exact_match_8k"] == first.flat["exact_match_8k"]


def test_a_run_that_may_take_no_time_asks_nothing(options: InfillOptions, progress: Progress) -> None:
    scripted = Scripted()
    flat = measure_contexts(replace(options, seconds=-1.0), scripted, PlainMeasure(), progress, weights="w").flat
    assert scripted.asked == []
    assert flat["exact_match_2k"] is None
    assert "copy_30k" not in flat


def test_the_oracle_fills_every_hole(options: InfillOptions) -> None:
    flat = run_contexts(replace(options, oracle=True)).flat
    assert flat["exact_match_32k"] == flat["copy_30k"] == 1.0


def test_contexts_and_policies_are_not_compared_at_once(options: InfillOptions) -> None:
    with pytest.raises(ValueError, match="one at a time"):
        run_contexts(replace(options, policies=("default",)))


def test_related_code_is_of_other_files_and_of_the_package_last(files: tuple[HeldoutFile, ...], hole: Hole) -> None:
    package = next(file.package for file in files if file.path == hole.path)
    sibling = HeldoutFile(package, "src/sibling.py", "python", "def average(numbers):\n    return sum(numbers)\n")
    found = Surroundings((*files, sibling)).related(hole)
    assert hole.path not in {excerpt.path for excerpt in found}
    assert all(excerpt.path.endswith(".py") for excerpt in found)
    assert found[-1].path == "src/sibling.py"
    assert len(found) > 1


def test_a_situation_does_not_hold_the_answer(files: tuple[HeldoutFile, ...], hole: Hole) -> None:
    situation = Surroundings(files).situation(hole)
    assert situation.text == hole.prefix + hole.suffix
    assert situation.offset == len(hole.prefix)


def test_the_names_of_a_group_begin_differently(files: tuple[HeldoutFile, ...]) -> None:
    cases = list(copy_cases(files, EstimateCounter(), size=2048, groups=2, seed=1))
    assert len(cases) == 2 * NAMES
    assert {case.hole.language for case in cases} == {"go", "python"}
    for group in (cases[:NAMES], cases[NAMES:]):
        assert len({case.hole.prefix for case in group}) == NAMES


def test_a_size_without_a_distance_has_no_copies(files: tuple[HeldoutFile, ...]) -> None:
    assert 4096 not in copying.DISTANCES
    assert list(copy_cases(files, EstimateCounter(), size=4096, groups=1, seed=1)) == []
