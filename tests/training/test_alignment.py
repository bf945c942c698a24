"""From what became of suggestions to preferences, the loss of rewards, and what an alignment does to the weights."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.training.conftest import TINY

from calomel.engine.checkpoint import save_checkpoint
from calomel.engine.transformer import Transformer
from calomel.families.loading import load_checkpoint
from calomel.prompts.parts import EditRegion, PromptParts
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.alignment.data import (
    AlignConfig,
    AlignmentError,
    Judged,
    Preference,
    check_enough,
    preferences_of,
)
from calomel.training.alignment.loss import losses
from calomel.training.alignment.run import align, rounded


def random_model(tokenizer: Tokenizer, *, shift: bool = True, memory: bool = True) -> Transformer:
    torch.manual_seed(3)
    # Few enough masks to enumerate, and a window that is shorter than a prompt.
    small = replace(TINY, max_position_embeddings=1024, max_canvas=24, sliding_window=24, full_every=2, memory_width=8)
    shape = replace(small, logit_shift=shift, memory_entries=64 if memory else 0)
    model = Transformer(shape.model_config(tokenizer))
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.15)
    return model.requires_grad_(False).eval()


@pytest.fixture
def checkpoint(tokenizer: Tokenizer, corpus: Path, tmp_path: Path) -> Path:
    """A folder like a shipped one: edits are among its abilities."""
    folder = tmp_path / "model"
    abilities = {"kinds": ["fill", "edit"], "edit_region": {"above": 1, "below": 2, "characters": 140, "context": 64}}
    save_checkpoint(random_model(tokenizer), folder, abilities=abilities)
    shutil.copyfile(corpus / "tokenizer.json", folder / "tokenizer.json")
    (folder / "calibrator.json").write_text(json.dumps({"edit": {}}))
    (folder / "NOTICE").write_text("whose text it is\n")
    (folder / "MODEL_CARD.md").write_text("figures\n")
    return folder


@pytest.fixture
def settings() -> AlignConfig:
    return AlignConfig(
        learning_rate=3e-3,
        epochs=3,
        batch=4,
        draws=2,
        context=48,
        longest=40,
        fill_canvas=8,
        edit_canvas=16,
        held_out=0.25,
        held_out_draws=4,
        warmup=0.0,
        threads=1,
    )


def hole(number: int) -> PromptParts:
    return PromptParts(path=f"a{number}.py", prefix=f"total = {number}\nindex = ", suffix="\nvalue\n")


def region(number: int) -> PromptParts:
    return PromptParts(
        path=f"a{number}.py", prefix="total = 1\n", suffix="index\n", region=EditRegion(f"value = {number}\n", 3)
    )


@pytest.fixture
def preferences() -> list[Preference]:
    """Of every question: one answer that was taken, one that was rejected, and silence where that is right."""
    found = []
    for number in range(12):
        group = f"file {number}"
        found += [
            Preference(hole(number), "fill", "result", desirable=True, group=group),
            Preference(hole(number), "fill", "self.items", desirable=False, group=group),
            Preference(region(number), "edit", "result = 0\n", desirable=False, group=group),
            Preference(region(number), "edit", f"value = {number}\n", desirable=True, weight=0.5, group=group),
        ]
    return found


HOLE = PromptParts(prefix="total = ", suffix="\n")
REGION = PromptParts(prefix="a\n", region=EditRegion("b = 1\n", 0))
TAKEN = Judged(HOLE, "fill", "sum(values)", "accepted", group="g", max_context=512)


def test_too_few_suggestions_are_refused_with_numbers() -> None:
    rejected = replace(TAKEN, fate="rejected")
    with pytest.raises(AlignmentError, match="239 judged suggestions with text, 200 of them taken and 39 rejected; "):
        check_enough([TAKEN] * 200 + [rejected] * 39)
    with pytest.raises(AlignmentError, match="alignment needs 200, of either kind 40"):
        check_enough([TAKEN] * 159 + [rejected] * 40)
    check_enough([TAKEN] * 160 + [rejected] * 40)


def test_the_loss_pulls_desirable_answers_up_and_pushes_the_others_down() -> None:
    rewards = torch.zeros(2, requires_grad=True)
    losses(rewards, torch.tensor([True, False]), torch.ones(2), torch.zeros(1), 0.1).sum().backward()
    assert rewards.grad is not None
    # Half of the slope at the origin: beta / 4.
    assert rewards.grad.tolist() == pytest.approx([-0.025, 0.025])


def steps(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


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


def test_a_change_that_is_too_small_for_the_file_is_kept_in_the_mean() -> None:
    old = torch.full((40_000,), 0.05).bfloat16().float()
    step = 2.0**-12  # between two neighbours of bfloat16 there
    assert torch.equal((old + step / 8).bfloat16().float(), old)

    written = rounded(old + step / 8, torch.Generator().manual_seed(0))

    assert torch.equal(written.bfloat16().float(), written)
    assert float((written - old).mean()) == pytest.approx(step / 8, rel=0.05)
    assert torch.equal(rounded(old, torch.Generator().manual_seed(0)), old)
    assert torch.equal(rounded(-old, torch.Generator().manual_seed(0)), -old)


def test_nothing_is_learned_from_held_out_groups(
    checkpoint: Path, preferences: list[Preference], settings: AlignConfig, tmp_path: Path
) -> None:
    found = align(preferences, checkpoint, tmp_path / "run", replace(settings, held_out=0.5, epochs=1))

    assert (found.questions, found.answers) == (12, 24)
    # Of six files: two suggestions at a hole, one at a region.
    assert found.after["all"]["canvas"].count == 18
    assert math.isnan(found.after["edit"]["canvas"].taken)


REJECTED = replace(TAKEN, fate="rejected")


@pytest.mark.parametrize(
    ("judged", "lessons"),
    [
        ([TAKEN], [("sum(values)", True, 1.0), ("", False, 0.5)]),
        ([replace(TAKEN, fate="partly")], [("sum(values)", True, 0.5), ("", False, 0.25)]),
        ([REJECTED], [("sum(values)", False, 1.0), ("", True, 0.5)]),
        (
            [Judged(REGION, "edit", "b = 2\n", "rejected", wanted="b = 3\n")],
            [("b = 2\n", False, 1.0), ("b = 1\n", True, 0.5), ("b = 3\n", True, 0.5)],
        ),
        # Whoever wrote nothing, or the same, teaches no more; and to do nothing teaches nothing.
        ([replace(REJECTED, answer="zero", wanted="")], [("zero", False, 1.0), ("", True, 0.5)]),
        ([replace(REJECTED, answer="zero", wanted="zero")], [("zero", False, 1.0), ("", True, 0.5)]),
        ([Judged(REGION, "edit", "b = 1\n", "rejected")], []),
        # Silence is wrong where one of several suggestions was right.
        (
            [replace(REJECTED, answer="None", wanted="sum(values)"), TAKEN],
            [("None", False, 1.0), ("sum(values)", True, 1.0), ("", False, 0.5)],
        ),
    ],
)
def test_what_became_of_suggestions_teaches(judged: list[Judged], lessons: list[tuple[str, bool, float]]) -> None:
    found = list(preferences_of(judged))
    assert [(each.answer, each.desirable, each.weight) for each in found] == lessons
    assert {(each.parts, each.kind) for each in found} <= {(HOLE, "fill"), (REGION, "edit")}


def test_an_answer_far_from_the_origin_teaches_hardly_anything() -> None:
    rewards = torch.tensor([0.0, 100.0], requires_grad=True)
    losses(rewards, torch.tensor([True, True]), torch.ones(2), torch.zeros(1), 0.1).sum().backward()
    assert rewards.grad is not None
    assert abs(rewards.grad[1]) < abs(rewards.grad[0]) / 500
    # It is measured from the mean reward.
    sides = torch.tensor([True, False])
    near, far = (losses(torch.tensor([5.0, 3.0]), sides, torch.ones(2), torch.tensor([at]), 1.0) for at in (4.0, 10.0))
    assert near.sum() < far.sum()


def test_an_epoch_leaves_a_checkpoint_like_the_one_before_and_refuses_to_be_mixed_with_another(
    checkpoint: Path, preferences: list[Preference], settings: AlignConfig, tmp_path: Path
) -> None:
    long = Preference(PromptParts(prefix="x"), "fill", "value = 1\n" * 40, desirable=True, group="long")
    settings = replace(settings, epochs=1)
    found = align([*preferences, long], checkpoint, tmp_path / "run", settings)

    assert found.left_out == 1
    first = steps(tmp_path / "run")[0]
    for mode in ("canvas", "causal"):
        # The policy sees the very masks that the reference saw.
        assert (first[mode]["desirable"], first[mode]["undesirable"], first[mode]["origin"]) == (0.0, 0.0, 0.0)
    assert json.loads((found.checkpoint / "config.json").read_text()) == json.loads(
        (checkpoint / "config.json").read_text()
    )
    for name in ("tokenizer.json", "calibrator.json", "NOTICE"):
        assert (found.checkpoint / name).read_bytes() == (checkpoint / name).read_bytes()
    assert not (found.checkpoint / "MODEL_CARD.md").exists()
    changed = load_checkpoint(found.checkpoint).state_dict()
    assert any(not torch.equal(changed[name], each) for name, each in load_checkpoint(checkpoint).state_dict().items())
    with pytest.raises(AlignmentError, match="--resume goes on"):
        align(preferences, checkpoint, tmp_path / "run", settings)
    with pytest.raises(AlignmentError, match="other weights or settings"):
        align(preferences, checkpoint, tmp_path / "run", replace(settings, seed=1), resume=True)
    with pytest.raises(AlignmentError, match="nothing to tell apart"):
        align([each for each in preferences if each.desirable], checkpoint, tmp_path / "other", settings)
