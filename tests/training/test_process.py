"""The memory that a run keeps, and two processes that train one model, started by torchrun as a user would."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from calomel.training.batch import BatchStream
from calomel.training.config import TrainConfig, TrainingConfigError
from calomel.training.process import Ranks, own_device

# The pages that the system gives a process for a block of 64 MiB that is freed and asked for again, twenty times.
PROGRAM = """
import resource, sys
import torch
from calomel.training.process import keep_freed_memory

if sys.argv[1] == "keep":
    assert keep_freed_memory()
torch.zeros(16 * 2**20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    torch.zeros(16 * 2**20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(mode: str) -> int:
    found = subprocess.run([sys.executable, "-c", PROGRAM, mode], capture_output=True, text=True, check=True)
    return int(found.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_freed_memory_is_used_again_without_asking_the_system() -> None:
    assert faults("keep") < faults("plain") / 4


PROGRAM_ranks = Path(__file__).with_name("rank_program.py")
TOML = """
corpus = "{corpus}/train.jsonl.zst"
held_out = "{corpus}/heldout.jsonl.zst"
tokenizer = "{corpus}/tokenizer.json"
rows = {rows}
threads = 1
evaluate_steps = 20
checkpoint_minutes = 0.02

[[shapes]]
documents = 2
front = 96
holes = 3
canvas = 12

[model]
vocab_size = {vocabulary}
hidden_size = 32
intermediate_size = 48
layers = 2
heads = 2
kv_heads = 1
head_dim = 16
sliding_window = 40

[optimization]
compile = false
warmup_steps = 5
"""


def together(config: Path, out: Path, resume: str = "fresh") -> list[dict[str, Any]]:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
            *(str(PROGRAM_ranks), str(config), str(out), resume),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((out / f"rank{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]


@pytest.mark.slow
def test_two_processes_train_one_model(config: TrainConfig, tmp_path: Path) -> None:
    file, out = tmp_path / "run.toml", tmp_path / "out"
    text = TOML.format(corpus=config.corpus.parent, vocabulary=config.model.vocab_size, rows=20_000)
    file.write_text(text, encoding="utf-8")

    one, other = together(file, out)

    assert one["gradient"] == other["gradient"] == [1.5] * 6
    assert one["unused"] == other["unused"] == [0.5, 0.5]
    assert one["shared"] == other["shared"] == [0.0, 0.0]
    assert one["total"] == other["total"] == [2.0, 1.0]
    assert one["batch"] != other["batch"], "each rank reads batches of its own"
    assert one["weights"] == other["weights"], "both hold the same weights at the end"
    assert one["counters"] == other["counters"]
    assert one["counters"]["step"] > 5
    entries = [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    steps = [entry["step"] for entry in entries if not entry.get("held_out")]
    assert steps == sorted(set(steps)), "the first rank alone logs"

    file.write_text(text.replace("rows = 20000", "rows = 40000"), encoding="utf-8")
    further, beside = together(file, out, "resume")
    assert further["weights"] == beside["weights"] != one["weights"]
    assert further["counters"]["step"] > one["counters"]["step"]
    assert further["counters"]["sessions"] == 2


def test_a_process_that_was_started_alone_stays_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with Ranks.joined(torch.device("cpu")) as ranks:
        assert (ranks.rank, ranks.count, ranks.first) == (0, 1, True)
        weight = torch.nn.Parameter(torch.zeros(2))
        ranks.average([weight])
        assert weight.grad is None
        assert ranks.total(torch.ones(1)).tolist() == [1.0]
        ranks.wait()


def test_without_the_others_a_rank_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(TrainingConfigError, match="torchrun"), Ranks.joined(torch.device("cpu")):
        pass


def test_each_process_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert own_device("cuda") == torch.device("cuda:3")
    assert own_device("cuda:1") == torch.device("cuda:1")
    assert own_device("cpu") == torch.device("cpu")


def test_one_process_reads_what_it_read_before(config: TrainConfig) -> None:
    first, second = next(iter(BatchStream(config, 4))), next(iter(BatchStream(config, 4, Ranks())))
    assert torch.equal(first.ids, second.ids)
    other = next(iter(BatchStream(config, 4, Ranks(1, 2))))
    assert first.ids.shape != other.ids.shape or not torch.equal(first.ids, other.ids)
