"""Runs of the trainer: what they learn, leave behind, wait for, and refuse."""

from __future__ import annotations

import json
import os
import random
import signal
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from tests.engine.test_attention import forward, room, whole
from torch import Tensor

from calomel.engine.attention import Piece
from calomel.engine.transformer import Transformer
from calomel.families.loading import load_checkpoint
from calomel.prompts.parts import Edit, RegionBounds
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.attention import TreeAttention, branch_structure
from calomel.training.batch import Batch, batches
from calomel.training.branch import head_rows, rows
from calomel.training.config import BatchShape, Optimization, TrainConfig, TrainingConfigError
from calomel.training.corpus.shards import CorpusError, Document
from calomel.training.edits.story import Story, write_stories
from calomel.training.examples import ExampleMaker
from calomel.training.rendered import EDITS, TEXT, DocumentSampler, Shard, render
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


@pytest.mark.parametrize("name", ["nano", "nano-30m"])
def test_the_shipped_configurations_are_valid(name: str) -> None:
    path = Path(__file__).parents[2] / f"model/calomel/training/configs/{name}.toml"

    config = TrainConfig.from_file(path)

    assert {shape.canvas for shape in config.shapes} <= set(range(8, 65))


def test_shards_hold_the_texts_of_the_corpus_and_its_stories(
    config: TrainConfig, documents: list[Document], corpus: Path, tmp_path: Path
) -> None:
    tokenizer = Tokenizer.from_file(config.data / "tokenizer.json")
    story = Story("commit", "go", "größe.go", "a := 1\r\nb := 2\n", (Edit(0, 1, "größe"),))
    for name in ("train-edits", "heldout-edits"):
        write_stories(tmp_path / f"{name}.jsonl.zst", [story])

    render(corpus, tmp_path, tmp_path, tokenizer=config.data / "tokenizer.json", tokens=3_000)

    whole, few = (Shard(folder / TEXT, tokenizer) for folder in (config.data, tmp_path))
    assert [whole.document(entry) for entry in whole.entries] == documents[:10]
    assert [few.document(entry) for entry in few.entries] == documents[: len(few.entries)]
    assert 0 < few.entries[-1].end <= 3_000
    edits = Shard(tmp_path / EDITS, tokenizer)
    assert edits.story(edits.entries[0]) == story


def test_missing_shards_say_how_to_make_it(config: TrainConfig, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes((config.data / "tokenizer.json").read_bytes())
    with pytest.raises(CorpusError, match="calomel shards"):
        train(replace(config, data=tmp_path), tmp_path / "run")


def test_weights_are_not_trained_further_with_another_tokenizer(config: TrainConfig, tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint/tokenizer.json").write_text("{}")

    with pytest.raises(TrainingConfigError, match="differ; to train the weights further"):
        train(replace(config, init_from=tmp_path / "checkpoint"), tmp_path / "run")


def test_a_run_over_edits_says_in_the_checkpoint_what_it_learned(
    config: TrainConfig, corpus: Path, tmp_path: Path
) -> None:
    text = "def add(first, second):\n    return first + second\n\n\n" * 6
    changes = [Edit(at, at + 6, "others") for at in range(len(text)) if text.startswith("second", at)]
    for name in ("train-edits", "heldout-edits"):
        write_stories(tmp_path / f"{name}.jsonl.zst", [Story("rename", "python", "a.py", text, tuple(changes))])
    render(corpus, tmp_path, tmp_path / "shards", tokenizer=config.data / "tokenizer.json")
    region = RegionBounds(above=1, below=1, characters=90)
    config = replace(
        config,
        data=tmp_path / "shards",
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


def test_a_warm_start_takes_the_weights_and_nothing_else(config: TrainConfig, tmp_path: Path) -> None:
    train(replace(config, rows=8_000), tmp_path / "first")
    silent = Optimization(compile=False, muon_lr=0.0, adam_lr=0.0)
    still = replace(config, rows=1, init_from=tmp_path / "first/checkpoint", optimization=silent)
    counters = train(still, tmp_path / "second")

    assert counters.sessions == 1
    first, second = (load_checkpoint(tmp_path / name / "checkpoint") for name in ("first", "second"))
    for name, tensor in first.state_dict().items():
        torch.testing.assert_close(second.state_dict()[name], tensor, atol=0, rtol=0)


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


def a_batch(config: TrainConfig, tokenizer: Tokenizer) -> Batch:
    sampler = DocumentSampler(Shard(config.data / TEXT, tokenizer), {})
    return next(batches(sampler, ExampleMaker(tokenizer, config), config, random.Random(4)))


def a_model(config: TrainConfig, tokenizer: Tokenizer) -> Transformer:
    torch.manual_seed(2)
    return Transformer(config.model.model_config(tokenizer))


def trained(model: Transformer, batch: Batch) -> Tensor:
    """What training reads of every row [B * T, D]."""
    structure = branch_structure(batch.shape, logit_shift=model.config.diffusion.logit_shift)
    attend = TreeAttention(
        model.config, batch.shape, batch.positions, batch.limit, batch.valid, structure, dtype=torch.float32
    )
    found: Tensor = model(batch.ids.flatten(), batch.positions.flatten(), attend)
    return found


@pytest.mark.parametrize("shift", [False, True])
def test_the_engine_gives_the_logits_that_training_gave_of_answers_and_of_both_canvases(
    config: TrainConfig, tokenizer: Tokenizer, *, shift: bool
) -> None:
    """So no row of training sees what the engine does not have: a canvas sees no clean answer and no other canvas."""
    config = replace(config, gap_share=0.0, model=replace(config.model, logit_shift=shift))
    model, batch = a_model(config, tokenizer), a_batch(config, tokenizer)
    shape = batch.shape
    with torch.no_grad():
        expected = model.logits(trained(model, batch)).unflatten(0, (2, -1))[0]

    def rows_of(first: int, count: int) -> Tensor:
        found = torch.arange(first, first + count)
        return found[batch.valid[0, found]]

    for hole in range(shape.holes):
        start = shape.front + hole * rows(shape)
        answer = start + head_rows(shape)
        asked = torch.cat((torch.arange(int(batch.limit[0, start])), rows_of(start, head_rows(shape))))
        context = batch.ids[0, asked].tolist()
        known = len(context) - shift  # with shifted logits the canvas begins with the last token of the context
        (table,) = room(model, len(context) + shape.canvas)
        with torch.inference_mode():
            for first, last in pairwise((0, known // 2, known)):  # in two chunks, as a long prompt is
                forward(model, [Piece(context[first:last], table, first, causal=True)])
                table.length = last
            for begin in (answer + shape.canvas, answer + 2 * shape.canvas):
                canvas = rows_of(begin, shape.canvas)
                ids = batch.ids[0, canvas].tolist()
                live = forward(model, [Piece(ids, table, known, causal=False, read=range(len(ids)))])
                torch.testing.assert_close(live, expected[canvas], atol=1e-4, rtol=1e-4)
            causal = torch.cat((asked, rows_of(answer, shape.canvas)))
            ids = batch.ids[0, causal].tolist()
            live = whole(model, ids)
            torch.testing.assert_close(live, expected[causal], atol=1e-4, rtol=1e-4)
