"""One of several processes that train together: says what it has at the end."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from calomel.training import run
from calomel.training.batch import BatchStream
from calomel.training.config import TrainConfig
from calomel.training.process import Ranks


def main(config_file: str, out: str, resume: str) -> None:
    torch.set_num_threads(1)
    config = TrainConfig.from_file(Path(config_file))
    with Ranks.joined(torch.device("cpu")) as ranks:
        weight = torch.nn.Parameter(torch.zeros(2, 3))
        unused = torch.nn.Parameter(torch.zeros(2))
        weight.grad = torch.full((2, 3), float(ranks.rank + 1))
        if ranks.first:
            unused.grad = torch.ones(2)
        ranks.average([weight, unused])
        shared = torch.full((2,), float(ranks.rank))
        ranks.share([shared])
        total = ranks.total(torch.tensor([1.0, float(ranks.rank)]))
        batch = next(iter(BatchStream(config, 0, ranks)))
        trained = run._Run(config, Path(out), None, torch.device("cpu"), ranks)
        counters = trained.go(resume=resume == "resume")
        digest = hashlib.sha256()
        for tensor in trained.model.state_dict().values():
            digest.update(tensor.numpy().tobytes())
        found = {
            "gradient": weight.grad.flatten().tolist(),
            "unused": [] if unused.grad is None else unused.grad.tolist(),
            "shared": shared.tolist(),
            "total": total.tolist(),
            "batch": hashlib.sha256(batch.ids.numpy().tobytes()).hexdigest(),
            "weights": digest.hexdigest(),
            "counters": asdict(counters),
        }
        (Path(out) / f"rank{ranks.rank}.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
