"""`python -m calomel.training.on_gpu CONFIG --out OUT`: all that a few minutes on a GPU are for, as one command.

It checks the step on the device, measures it, trains, runs a command that asks the trained weights (`--then`), and
leaves everything in parts that are small enough to be sent. It ends by itself, and continues from the folder of its run
when called again. It needs PyTorch, NumPy, tokenizers, safetensors, rich, msgspec and pydantic, a folder of shards, and
no weights.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import shlex
import statistics
import subprocess
import tarfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import torch

from calomel.training.attention import branch_structure
from calomel.training.batch import Batch, BatchStream, open_stream, row_count, scored_rows
from calomel.training.branch import head_rows
from calomel.training.config import BatchShape, TrainConfig
from calomel.training.run import Run

# Products in bfloat16 a second that the cards do at best, without sparsity.
_PEAKS: Final = {"H100": 989e12, "H200": 989e12}
# A share of the peak below which the other way to attend is tried.
_LEAST_SHARE: Final = 0.20
_PART_BYTES: Final = 15 * 2**20
# Seconds that remain at the end for packing and saving.
_PACKING, _SAVING = 25.0, 10.0
_TOLERANCE: Final = 0.03


def products(config: TrainConfig, shape: BatchShape) -> float:
    """Operations (two for each multiplication) of one step: forward, and twice as many backward."""
    model, total = config.model, shape.documents * row_count(shape)
    width = model.heads * model.head_dim
    per_layer = model.hidden_size * (2 * width + 2 * model.kv_heads * model.head_dim + 3 * model.intermediate_size)
    linear = total * model.layers * per_layer
    branch = row_count(shape) - shape.front
    full = model.layers // model.full_every
    near = min(shape.front, 2 * model.sliding_window)
    front = shape.front * (full * shape.front + (model.layers - full) * near) / 2
    seen = shape.front / 2 + head_rows(shape) + 2 * shape.canvas
    attention = shape.documents * width * 2 * (front + model.layers * branch * seen)
    head = scored_rows(shape) * model.hidden_size * (config.losses.classes or model.vocab_size)
    return 6.0 * (linear + attention + head)


@dataclass(slots=True)
class Clock:
    """Wall clock of the command.

    Attributes:
        seconds: how long it may take in all.
        began: when it was started.
    """

    seconds: float
    began: float

    def left(self) -> float:
        """Seconds until the end."""
        return self.seconds - (time.monotonic() - self.began)

    def say(self, text: str) -> None:
        """Print what happened when."""
        print(f"[{time.monotonic() - self.began:6.1f} s] {text}", flush=True)


def check(config: TrainConfig, out: Path, device: torch.device) -> float:
    """How far loss and gradients of two layers on `device` are, relatively, from those of a CPU in float32.

    Raises:
        RuntimeError: they are too far.
    """
    shape = replace(min(_text(config), key=lambda each: each.front), documents=2)
    small = replace(config, shapes=(shape,), model=replace(config.model, layers=2, full_every=2))
    batch = next(open_stream(BatchStream(small, 0), 0))
    structure = branch_structure(shape, logit_shift=config.model.logit_shift)
    plain = replace(small, optimization=replace(config.optimization, compile=False))
    reference = Run(plain, out, None, torch.device("cpu"), torch.float32)
    torch.manual_seed(0)
    for parameter in reference.model.parameters():
        if parameter.ndim > 1:  # also those that begin as zeros, which would let no gradient through
            torch.nn.init.normal_(parameter, std=0.03)
    run = Run(small, out, None, device)
    run.model.load_state_dict(reference.model.state_dict())
    found = []
    for each in (reference, run):
        loss, _ = each.loss(batch.to(each.device), structure.to(each.device))
        loss.backward()
        gradients = [parameter.grad for parameter in each.model.parameters() if parameter.grad is not None]
        found.append((float(loss.detach()), torch.cat([slope.flatten().float().cpu() for slope in gradients])))
    (expected, wanted), (loss_there, slopes) = found
    # A gradient in bfloat16 is some per cent apart from the same in float32, a loss far less.
    apart = max(abs(loss_there - expected) / expected, float((slopes - wanted).norm() / wanted.norm()) / 10)
    if not apart < _TOLERANCE:
        raise RuntimeError(f"loss {loss_there:.4f} on {device}, {expected:.4f} on a CPU; {apart:.1%} apart")
    return apart


def _text(config: TrainConfig) -> list[BatchShape]:
    return [shape for shape in config.shapes if not shape.region]


def measure(run: Run, seconds: float) -> tuple[float, float]:
    """Rows a second and operations a second of steps of the first shape, over `seconds`; the weights do not change."""
    shape = run.config.shapes[0]
    few = replace(run.config, shapes=(shape,))
    made = open_stream(BatchStream(few, 0), 0)
    batches = [next(made).to(run.device) for _ in range(2)]
    _once(run, batches[0])
    _wait(run.device)
    began, steps = time.monotonic(), 0
    while (took := time.monotonic() - began) < seconds:
        for batch in batches:
            _once(run, batch)
        steps += len(batches)
        _wait(run.device)
    return steps * shape.documents * row_count(shape) / took, steps * products(run.config, shape) / took


def _once(run: Run, batch: Batch) -> None:
    run.loss(batch, run.structures[batch.shape])[0].backward()
    run.optimizer.step(0.0)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak(device: torch.device) -> float:
    """Operations a second that the device does at best: by its name, else those of a large product here."""
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
        for known, operations in _PEAKS.items():
            if known in name:
                return operations
    size = 4096 if device.type == "cuda" else 1024
    one = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    times = []
    for _ in range(5):
        began = time.monotonic()
        one @ one
        _wait(device)
        times.append(time.monotonic() - began)
    return 2 * size**3 / statistics.median(times)


def follow(command: str, checkpoint: Path, out: Path) -> dict[str, Path]:
    """Run a shell command that asks the trained weights; returns the files that it left in `out`, by name.

    Args:
        command: `{checkpoint}` and `{out}` in it are replaced by these folders.
        checkpoint: the folder of the weights.
        out: an empty folder.
    """
    out.mkdir(parents=True, exist_ok=True)
    told = {"checkpoint": shlex.quote(str(checkpoint)), "out": shlex.quote(str(out))}
    done = subprocess.run(command.format(**told), shell=True, check=False)  # noqa: S602 - the owner's own
    print(f"it ended with {done.returncode}", flush=True)
    return {f"{out.name}/{path.name}": path for path in sorted(out.iterdir()) if path.is_file()}


def pack(files: dict[str, Path], out: Path) -> list[Path]:
    """Write files as parts of one archive that `unpack` reads; weights take two thirds of their size there."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, path in files.items():
            content = path.read_bytes()
            if planes := path.suffix == ".safetensors" and len(content) % 2 == 0:
                # The first and the second byte of each number by themselves: exponents repeat, fractions do not.
                content = np.frombuffer(content, dtype=np.uint8).reshape(-1, 2).T.tobytes()
            info = tarfile.TarInfo(f"{name}.planes" if planes else name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    packed = lzma.compress(raw.getvalue(), preset=1)
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("part-*"):
        old.unlink()
    parts = []
    for number, at in enumerate(range(0, len(packed), _PART_BYTES)):
        parts.append(out / f"part-{number:02}")
        parts[-1].write_bytes(packed[at : at + _PART_BYTES])
    return parts


def unpack(parts: Path, out: Path) -> list[Path]:
    """The files of `pack` again, below `out`."""
    packed = b"".join(part.read_bytes() for part in sorted(parts.glob("part-*")))
    found = []
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(packed))) as tar:
        for member in tar:
            content = tar.extractfile(member)
            if content is None or member.name.startswith("/") or ".." in member.name:
                continue
            whole, path = content.read(), out / member.name.removesuffix(".planes")
            if member.name.endswith(".planes"):
                whole = np.frombuffer(whole, dtype=np.uint8).reshape(2, -1).T.tobytes()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(whole)
            found.append(path)
    return found


def main(arguments: list[str] | None = None) -> None:
    """The command; see the module."""
    parser = argparse.ArgumentParser(description="Train on a GPU for some minutes, checked, measured and packed.")
    parser.add_argument("config", type=Path, help="training configuration (TOML)")
    parser.add_argument("--out", type=Path, required=True, help="where the parts go")
    parser.add_argument("--run", type=Path, default=Path("runs/gpu"), help="folder of the run, which it resumes")
    parser.add_argument("--data", type=Path, help="folder of shards; default: that of the configuration")
    parser.add_argument("--seconds", type=float, default=560.0, help="wall clock of the whole command")
    parser.add_argument("--upto", type=float, default=1.0, help="share of the run that is then done")
    parser.add_argument("--then", default="", help="command for {checkpoint}; what it leaves in {out} is packed, too")
    parser.add_argument("--then-seconds", type=float, default=120.0, help="how long that takes")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--layers", type=int, help="fewer layers, for a rehearsal")
    parser.add_argument("--documents", type=int, help="at most so many in a batch, for a rehearsal")
    parser.add_argument("--workers", type=int, help="processes that make batches")
    given = parser.parse_args(arguments)
    clock = Clock(given.seconds, time.monotonic())
    config = TrainConfig.from_file(given.config)
    model = replace(config.model, layers=given.layers or config.model.layers)
    shapes = tuple(
        replace(shape, documents=min(shape.documents, given.documents or shape.documents)) for shape in config.shapes
    )
    workers = config.workers if given.workers is None else given.workers
    config = replace(config, data=given.data or config.data, model=model, shapes=shapes, workers=workers)
    then = (given.then, given.then_seconds if given.then else 0.0)
    _go(config, clock, given.run, given.out, torch.device(given.device), given.upto, then)


def _go(
    config: TrainConfig,
    clock: Clock,
    folder: Path,
    out: Path,
    device: torch.device,
    upto: float,
    then: tuple[str, float],
) -> None:
    # A rehearsal of a minute has less of everything.
    scale = min(1.0, clock.seconds / 560.0)
    clock.say(f"loss and gradients: {check(config, folder / 'check', device):.2%} from those of a CPU")
    run = Run(config, folder, None, device)
    clock.say(f"attention of fronts: {'flash' if run.loss.flash else 'masked'}")
    share = _fastest(run, clock, 60.0 * scale)
    packing, saving = max(_PACKING * scale, 5.0), max(_SAVING * scale, 4.0)
    counters = run.go(resume=True, until=(clock.began + clock.seconds - then[1] - packing - saving, upto))
    clock.say(f"{counters.step:,} steps, {counters.rows:,} rows")
    best = folder / ("average" if config.optimization.average else "checkpoint")
    told = {"share_of_peak": share, **asdict(counters)}
    (folder / "told.json").write_text(json.dumps(told) + "\n", encoding="utf-8")
    names = [best / "model.safetensors", best / "config.json", best / "tokenizer.json"]
    names += [folder / name for name in ("log.jsonl", "told.json")]
    files = {path.name: path for path in names}
    if then[0]:
        del run
        files |= follow(then[0], best, folder / "then")
        clock.say("asked")
    parts = pack(files, out)
    clock.say(f"{len(parts)} parts, {sum(part.stat().st_size for part in parts):,} bytes in {out}")


def _fastest(run: Run, clock: Clock, seconds: float) -> float:
    """Choose how fronts attend, by the clock; returns the share of the peak."""
    before = {name: tensor.clone() for name, tensor in run.optimizer.state.items()}
    most = peak(run.device)
    found = {}
    for flash in (True, False) if run.loss.flash else (False,):
        run.loss.flash = flash
        rows, operations = measure(run, seconds)
        found[flash] = operations / most
        clock.say(f"{rows:,.0f} rows a second, {found[flash]:.1%} of {most / 1e12:,.2f} TFLOP/s")
        if found[flash] >= _LEAST_SHARE:
            break
    run.loss.flash = max(found, key=lambda flash: found[flash])
    run.optimizer.load(before)
    return max(found.values())


if __name__ == "__main__":
    main()
