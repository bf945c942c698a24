"""What an alignment does to the weights, and what it leaves behind."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from calomel.families.loading import load_checkpoint
from calomel.prompts.parts import PromptParts
from calomel.training.alignment.data import AlignConfig, AlignmentError, Preference
from calomel.training.alignment.run import align, rounded


def steps(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def test_before_the_first_step_every_reward_is_exactly_nothing(
    checkpoint: Path, preferences: list[Preference], settings: AlignConfig, tmp_path: Path
) -> None:
    """The policy sees the very masks that the reference saw."""
    align(preferences, checkpoint, tmp_path / "run", replace(settings, epochs=1))

    first = steps(tmp_path / "run")[0]
    for mode in ("canvas", "causal"):
        assert (first[mode]["desirable"], first[mode]["undesirable"], first[mode]["origin"]) == (0.0, 0.0, 0.0)


def test_what_is_desirable_becomes_likelier_and_what_is_not_less_likely(
    checkpoint: Path, preferences: list[Preference], settings: AlignConfig, tmp_path: Path
) -> None:
    found = align(preferences, checkpoint, tmp_path / "run", settings)

    last = steps(tmp_path / "run")[-1]
    for mode in ("canvas", "causal"):
        assert last[mode]["desirable"] > 0 > last[mode]["undesirable"]
        whole, then = found.after["all"][mode], found.before["all"][mode]
        assert whole.taken - whole.rejected > then.taken - then.rejected
        before, after = found.before["edit"][mode], found.after["edit"][mode]
        assert after.silence - after.rejected > before.silence - before.rejected
    assert last["loss"] < steps(tmp_path / "run")[0]["loss"]


def test_a_run_that_was_stopped_ends_where_it_would_have_ended(
    checkpoint: Path, preferences: list[Preference], settings: AlignConfig, tmp_path: Path, monkeypatch: Any
) -> None:
    from calomel.training.alignment import run as module

    settings = replace(settings, epochs=2)
    whole = align(preferences, checkpoint, tmp_path / "whole", settings)
    step = module._Run._step

    def stopping(self: Any, *arguments: Any) -> Any:
        self.interruption.asked = len(steps(tmp_path / "parts") if (tmp_path / "parts/log.jsonl").exists() else ()) == 2
        return step(self, *arguments)

    monkeypatch.setattr(module._Run, "_step", stopping)
    first = align(preferences, checkpoint, tmp_path / "parts", settings)
    monkeypatch.undo()
    second = align(preferences, checkpoint, tmp_path / "parts", settings, resume=True)

    assert (first.steps, second.steps) == (3, whole.steps)
    one, other = (load_file(tmp_path / name / "state.safetensors") for name in ("whole", "parts"))
    for name, tensor in one.items():
        torch.testing.assert_close(other[name], tensor, atol=1e-6, rtol=1e-5)


def test_the_checkpoint_keeps_its_abilities_its_tokenizer_and_its_licences(
    checkpoint: Path, preferences: list[Preference], settings: AlignConfig, tmp_path: Path
) -> None:
    found = align(preferences, checkpoint, tmp_path / "run", replace(settings, epochs=1))

    said = json.loads((found.checkpoint / "config.json").read_text())
    assert said == json.loads((checkpoint / "config.json").read_text())
    for name in ("tokenizer.json", "calibrator.json", "NOTICE"):
        assert (found.checkpoint / name).read_bytes() == (checkpoint / name).read_bytes()
    assert not (found.checkpoint / "MODEL_CARD.md").exists()
    changed = load_checkpoint(found.checkpoint).state_dict()
    assert any(not torch.equal(changed[name], each) for name, each in load_checkpoint(checkpoint).state_dict().items())


def test_a_change_that_is_too_small_for_the_file_is_kept_in_the_mean() -> None:
    old = torch.full((40_000,), 0.05).bfloat16().float()
    step = 2.0**-12  # between two neighbours of bfloat16 there
    assert torch.equal((old + step / 8).bfloat16().float(), old)

    written = rounded(old + step / 8, torch.Generator().manual_seed(0))

    assert torch.equal(written.bfloat16().float(), written)
    assert float((written - old).mean()) == pytest.approx(step / 8, rel=0.05)
    assert torch.equal(rounded(old, torch.Generator().manual_seed(0)), old)
    assert torch.equal(rounded(-old, torch.Generator().manual_seed(0)), -old)


def test_saturation_margins_and_accuracy_are_logged(
    checkpoint: Path, preferences: list[Preference], settings: AlignConfig, tmp_path: Path
) -> None:
    align(preferences, checkpoint, tmp_path / "run", replace(settings, beta=50.0))

    last = steps(tmp_path / "run")[-1]["canvas"]
    assert last["over_6"] > 0.3
    assert last["margin"] == pytest.approx(last["desirable"] - last["undesirable"], rel=1e-4)
    assert last["accuracy"] > 0.7
    report = json.loads((tmp_path / "run/alignment.json").read_text())
    assert report["after"]["all"]["canvas"]["count"] == report["before"]["all"]["canvas"]["count"] > 0


def test_nothing_is_learned_from_held_out_groups(
    checkpoint: Path, preferences: list[Preference], settings: AlignConfig, tmp_path: Path
) -> None:
    found = align(preferences, checkpoint, tmp_path / "run", replace(settings, held_out=0.5, epochs=1))

    assert (found.questions, found.answers) == (12, 24)
    # Of six files: two suggestions at a hole, one at a region.
    assert found.after["all"]["canvas"].count == 18
    assert math.isnan(found.after["edit"]["canvas"].taken)


def test_a_folder_that_holds_another_run_is_refused(
    checkpoint: Path, preferences: list[Preference], settings: AlignConfig, tmp_path: Path
) -> None:
    settings = replace(settings, epochs=1)
    align(preferences, checkpoint, tmp_path / "run", settings)

    with pytest.raises(AlignmentError, match="--resume goes on"):
        align(preferences, checkpoint, tmp_path / "run", settings)
    with pytest.raises(AlignmentError, match="other weights or settings"):
        align(preferences, checkpoint, tmp_path / "run", replace(settings, seed=1), resume=True)


def test_answers_that_are_too_long_are_left_out_and_counted(
    checkpoint: Path, preferences: list[Preference], settings: AlignConfig, tmp_path: Path
) -> None:
    long = Preference(PromptParts(prefix="x"), "fill", "value = 1\n" * 40, desirable=True, group="long")

    found = align([*preferences, long], checkpoint, tmp_path / "run", replace(settings, epochs=1))

    assert found.left_out == 1


def test_answers_of_one_kind_alone_teach_nothing(
    checkpoint: Path, preferences: list[Preference], settings: AlignConfig, tmp_path: Path
) -> None:
    with pytest.raises(AlignmentError, match="nothing to tell apart"):
        align([each for each in preferences if each.desirable], checkpoint, tmp_path / "run", settings)
