"""Runs of the trainer: what they learn, leave behind, wait for, and refuse."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from calomel.families.loading import load_checkpoint
from calomel.prompts.parts import Edit, RegionBounds
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.config import BatchShape, Optimization, TrainConfig, TrainingConfigError
from calomel.training.corpus.shards import CorpusError
from calomel.training.edits.story import Story, write_stories
from calomel.training.run import train


def entries(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def test_a_run_learns_logs_and_leaves_a_loadable_checkpoint(config: TrainConfig, tmp_path: Path) -> None:
    counters = train(replace(config, rows=60_000, checkpoint_minutes=0.02), tmp_path)

    log = entries(tmp_path)
    assert counters.step > 10
    assert log[-1]["context"] < log[0]["context"] - 0.5
    model = load_checkpoint(tmp_path / "checkpoint")
    assert model.config.diffusion.mask_token_id == Tokenizer.from_file(tmp_path / "checkpoint/tokenizer.json").mask


def test_an_average_of_the_weights_is_measured_written_and_resumed(config: TrainConfig, tmp_path: Path) -> None:
    config = replace(config, optimization=replace(config.optimization, average=0.9))
    first = train(replace(config, rows=6_000), tmp_path)
    second = train(replace(config, rows=12_000), tmp_path, resume=True)

    assert second.step > first.step
    assert second.sessions == 2
    assert second.rows > first.rows
    raw, mean = (load_checkpoint(tmp_path / name).state_dict() for name in ("checkpoint", "average"))
    assert raw.keys() == mean.keys()
    assert not torch.equal(raw["embed_tokens.weight"], mean["embed_tokens.weight"])
    torch.testing.assert_close(raw["embed_tokens.weight"], mean["embed_tokens.weight"], atol=0.1, rtol=0.1)
    last, of_mean = (entry for entry in entries(tmp_path)[-2:])
    assert last["context"] != of_mean["context"] == pytest.approx(last["context"], abs=0.5)


def test_the_shipped_configuration_is_valid() -> None:
    path = Path(__file__).parents[2] / "model/calomel/training/configs/nano.toml"

    config = TrainConfig.from_file(path)

    assert {shape.canvas for shape in config.shapes} <= set(range(8, 65))


def test_a_missing_corpus_says_how_to_make_it(config: TrainConfig, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="calomel corpus"):
        train(replace(config, corpus=tmp_path / "none.jsonl.zst"), tmp_path)


def test_weights_are_not_trained_further_with_another_tokenizer(config: TrainConfig, tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint/tokenizer.json").write_text("{}")

    with pytest.raises(TrainingConfigError, match="differ; to train the weights further"):
        train(replace(config, init_from=tmp_path / "checkpoint"), tmp_path / "run")


def test_a_run_over_edits_says_in_the_checkpoint_what_it_learned(config: TrainConfig, tmp_path: Path) -> None:
    text = "def add(first, second):\n    return first + second\n\n\n" * 6
    changes = [Edit(at, at + 6, "others") for at in range(len(text)) if text.startswith("second", at)]
    write_stories(tmp_path / "edits.jsonl.zst", [Story("rename", "python", "a.py", text, tuple(changes))])
    region = RegionBounds(above=1, below=1, characters=90)
    config = replace(
        config,
        edits=tmp_path / "edits.jsonl.zst",
        held_out_edits=tmp_path / "edits.jsonl.zst",
        shapes=(BatchShape(2, 128, 2, 40, region=60, answers=2.0), *config.shapes),
        region=region,
        evaluate_steps=3,
    )

    train(config, tmp_path / "run")

    told = json.loads((tmp_path / "run/checkpoint/config.json").read_text())
    assert told["kinds"] == ["fill", "edit"]
    assert told["edit_region"] == asdict(region)
    held_out = [entry for entry in entries(tmp_path / "run") if "held_out" in entry]
    assert held_out
    assert all(entry["edit_causal"] > 0 and entry["causal"] > 0 for entry in held_out)
    load_checkpoint(tmp_path / "run/checkpoint")


def test_a_warm_start_takes_the_weights_and_nothing_else_and_new_tables_say_nothing_yet(
    config: TrainConfig, tmp_path: Path
) -> None:
    train(replace(config, rows=8_000), tmp_path / "first")
    silent = Optimization(compile=False, muon_lr=0.0, adam_lr=0.0)
    still = replace(config, rows=1, init_from=tmp_path / "first/checkpoint", optimization=silent)
    counters = train(still, tmp_path / "second")
    train(replace(still, model=replace(config.model, memory_entries=256, memory_width=8)), tmp_path / "third")

    assert counters.sessions == 1
    first, second, third = (load_checkpoint(tmp_path / name / "checkpoint") for name in ("first", "second", "third"))
    for name, tensor in first.state_dict().items():
        torch.testing.assert_close(second.state_dict()[name], tensor, atol=0, rtol=0)
    old, new = ([entry for entry in entries(tmp_path / name) if "held_out" in entry] for name in ("first", "third"))
    assert new[-1]["context"] == pytest.approx(old[-1]["context"], abs=0.02)
    assert third.config.memory is not None
    assert third.config.memory.entries == 256


def test_a_run_waits_while_the_pause_file_exists_and_can_be_ended(
    config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = tmp_path / "pause"
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            pause.unlink()
        if len(naps) == 4:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("calomel.training.run.time.sleep", sleep)
    pause.touch()
    assert train(replace(config, rows=2_000), tmp_path / "run", pause_file=pause).seconds < 60
    assert len(naps) == 3
    pause.touch()
    stopped = train(replace(config, rows=6_000), tmp_path / "other", pause_file=pause)
    assert stopped.step == 1
    assert train(replace(config, rows=stopped.rows), tmp_path / "other", resume=True).step == 1
    assert train(replace(config, rows=6_000), tmp_path / "other", resume=True).step > 1
