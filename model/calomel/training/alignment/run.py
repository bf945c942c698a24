"""The alignment behind `calomel align`."""

from __future__ import annotations

import hashlib
import json
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import torch
from rich.console import Console
from torch import Tensor

from calomel.engine.checkpoint import CONFIG_FILE, WEIGHTS_FILE, save_checkpoint
from calomel.engine.transformer import Transformer
from calomel.families.loading import load_checkpoint
from calomel.prompts.tokenizer import Tokenizer
from calomel.selectivity.sample import auroc
from calomel.storage import write_whole
from calomel.training.alignment.data import AlignConfig, AlignmentError, Lesson, Preference, Renderer, balance, split
from calomel.training.alignment.loss import MODES, Layout, figures, lay_out, losses, score
from calomel.training.run import Interruption, progress_bar
from calomel.training.state import Counters, load_state, save_state

# The model card stays behind: its figures are of other weights.
_COPIED: Final = ("tokenizer.json", "calibrator.json", "recall.json", "NOTICE", "LICENSE")


def export(model: Transformer, source: Path, folder: Path, seed: int) -> None:
    """Write `model` to `folder`, with what the checkpoint `source` says it was trained for, its tokenizer and licences.

    Its parameters become what was written. The calibrator is the old one: `calomel calibrate` fits it anew to what the
    new weights say.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(rounded(parameter.cpu(), generator))
    said = json.loads((source / CONFIG_FILE).read_text(encoding="utf-8"))
    known = model.config.to_dict()
    save_checkpoint(model, folder, abilities={name: said[name] for name in said if name not in known})
    for name in _COPIED:
        if (source / name).is_file():
            write_whole(folder / name, (source / name).read_bytes())


def rounded(weights: Tensor, generator: torch.Generator) -> Tensor:
    """Float32 weights as bfloat16 can hold them: up or down by chance, so that in the mean nothing changes.

    An alignment moves most weights by less than half of what tells two neighbours in bfloat16 apart. Rounded to the
    nearest, they stay where they were: of nano's margin behind 11 steps 57 % was left; by chance,
    99 %.
    """
    bits = weights.detach().float().contiguous().view(torch.int32)
    chance = torch.randint(0, 1 << 16, bits.shape, generator=generator, dtype=torch.int32)
    return ((bits + chance) & ~0xFFFF).view(torch.float32)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Means over held-out answers of one kind and one mode; NaN where there is none.

    Attributes:
        taken, rejected: score, in nats, of suggestions that were taken or rejected.
        silence: score of leaving everything as it is, over all questions.
        auroc: how well `score of the suggestion - score of silence` tells taken suggestions from rejected ones.
        count: suggestions.
    """

    taken: float
    rejected: float
    silence: float
    auroc: float
    count: int


Evaluations = dict[str, dict[str, Evaluation]]


def evaluate(lessons: Sequence[Lesson], scores: Sequence[Tensor]) -> Evaluations:
    """By kind (`fill`, `edit`, `all`), then by mode, of the scores [2, A]; kinds that nobody asked for are left out."""
    found: Evaluations = {}
    for kind in ("fill", "edit", "all"):
        chosen = [(lesson, each) for lesson, each in zip(lessons, scores, strict=True) if kind in (lesson.kind, "all")]
        if chosen:
            found[kind] = {
                mode: _evaluate([(lesson, each[row].tolist()) for lesson, each in chosen])
                for row, mode in enumerate(MODES)
            }
    return found


def _evaluate(scored: Sequence[tuple[Lesson, list[float]]]) -> Evaluation:
    suggested: list[tuple[bool, float, float]] = []  # whether it was taken, its score, and that above silence
    quiet: list[float] = []
    for lesson, scores in scored:
        silent, answers = lesson.silence, lesson.question.answers
        quiet.append(math.nan if silent is None else scores[silent])
        silence_wanted = silent is not None and lesson.weights[silent] > 0 and lesson.desirable[silent]
        for answer, value, weight, desirable in zip(answers, scores, lesson.weights, lesson.desirable, strict=True):
            is_silence = silent is not None and answer == answers[silent]
            # Where silence was right, a desirable text is what the person wrote: nobody suggested it.
            if weight and not is_silence and not (desirable and silence_wanted):
                suggested.append((desirable, value, value - quiet[-1]))
    good, said, above = np.array(suggested).reshape(-1, 3).T
    ranked = auroc(above, good)
    return Evaluation(
        taken=_mean(said[good > 0]),
        rejected=_mean(said[good == 0]),
        silence=_mean(np.array(quiet)),
        auroc=math.nan if ranked is None else ranked,
        count=len(suggested),
    )


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


@dataclass(frozen=True, slots=True)
class Alignment:
    """What an alignment did.

    Attributes:
        checkpoint: folder of the aligned weights.
        before, after: what the weights think of held-out answers; empty when nothing is held out. `after` is of the
            weights as they were written.
        steps: optimizer steps, all sessions together.
        questions, answers: learned from.
        left_out: answers that are too long.
        desirable, undesirable: the weights of the two sides.
    """

    checkpoint: Path
    before: Evaluations
    after: Evaluations
    steps: int
    questions: int
    answers: int
    left_out: int
    desirable: float
    undesirable: float


REPORT: Final = "alignment.json"
_FINGERPRINT: Final = "fingerprint"
_WEIGHT_DECAY: Final = 0.01
_MAX_GRAD_NORM: Final = 1.0

Item = TypeVar("Item")


def align(
    preferences: Sequence[Preference],
    model: Path,
    out: Path,
    config: AlignConfig,
    *,
    resume: bool = False,
    device: str = "cpu",
) -> Alignment:
    """Make desirable answers likelier than undesirable ones.

    Args:
        preferences: of any order; they are split by group, shuffled and rendered here.
        model: checkpoint folder to begin with, which is the reference too.
        out: folder for everything that the run leaves.
        config: how.
        resume: go on from the state in `out`, if there is one.
        device: where to train.

    Raises:
        AlignmentError: there is nothing to learn, or `out` holds another run.
        CheckpointError, TokenizerError: `model` is incomplete.
    """
    return _Run(preferences, model, out, config, torch.device(device)).go(resume=resume)


class _Run:
    def __init__(
        self, preferences: Sequence[Preference], source: Path, out: Path, config: AlignConfig, device: torch.device
    ) -> None:
        if config.threads:
            torch.set_num_threads(config.threads)
        self.source, self.out, self.config = source, out, config
        self.model = load_checkpoint(source, device=device)
        self.reference = load_checkpoint(source, device=device).requires_grad_(requires_grad=False)
        renderer = Renderer(Tokenizer.from_file(source / "tokenizer.json"), config, self.model.config)
        learned, held_out = split(preferences, config.held_out, config.seed)
        self.lessons = renderer.lessons(learned)
        self.held_out = renderer.lessons(held_out, with_silence=True)
        if not self.lessons:
            raise AlignmentError("there is no answer to learn from")
        self.sides = balance(learned)
        self.left_out = renderer.too_long
        self.console = Console(stderr=True)
        self.interruption = Interruption()

    def go(self, *, resume: bool) -> Alignment:
        self._claim(resume=resume)
        with self.interruption:
            optimizer = torch.optim.AdamW(
                [each.requires_grad_() for each in self.model.parameters()],
                lr=self.config.learning_rate,
                betas=(0.9, 0.95),
                weight_decay=_WEIGHT_DECAY,
            )
            counters = (load_state(self.out, self.model, (optimizer,)) if resume else None) or Counters()
            counters.sessions += 1
            self._train(optimizer, counters)
        return self._finish(counters)

    def _claim(self, *, resume: bool) -> None:
        """Take the folder; a run that is there already must be this one."""
        fields = asdict(self.config)
        for name in ("threads", "checkpoint_minutes"):
            del fields[name]
        weights = hashlib.sha256((self.source / WEIGHTS_FILE).read_bytes()).hexdigest()
        said = f"{weights}\n{fields}\n{self.lessons}\n{self.held_out}"
        fingerprint = hashlib.sha256(said.encode()).hexdigest()
        path = self.out / _FINGERPRINT
        if path.is_file() and not resume:
            raise AlignmentError(f"{self.out} holds a run already: --resume goes on with it")
        if path.is_file() and path.read_text(encoding="utf-8") != fingerprint:
            raise AlignmentError(f"{self.out} belongs to other weights or settings: choose another --out, or delete it")
        self.out.mkdir(parents=True, exist_ok=True)
        write_whole(path, fingerprint)

    def _train(self, optimizer: torch.optim.Optimizer, counters: Counters) -> None:
        """Take the steps that are left."""
        batches = [(epoch, batch) for epoch in range(self.config.epochs) for batch in self._batches(epoch)]
        rising = max(1, round(self.config.warmup * len(batches)))
        saved = counters.seconds
        for epoch, batch in self._shown("aligning", batches[counters.step :]):
            if self.interruption.asked:
                break
            clock = time.monotonic()
            counters.step += 1
            # Rising, then falling to a tenth: the last steps of a small run should not be its loudest.
            left = 1 - 0.9 * max(0.0, (counters.step - rising) / max(1, len(batches) - rising))
            rate = self.config.learning_rate * min(1.0, counters.step / rising) * left
            for group in optimizer.param_groups:
                group["lr"] = rate
            entry = self._step(optimizer, epoch, batch)
            counters.seconds += time.monotonic() - clock
            self._log({"step": counters.step, "epoch": epoch, "rate": rate, **entry})
            if counters.seconds - saved > self.config.checkpoint_minutes * 60:
                save_state(self.out, self.model, (optimizer,), counters)
                saved = counters.seconds
        save_state(self.out, self.model, (optimizer,), counters)

    def _batches(self, epoch: int) -> Iterator[list[int]]:
        """Minibatches of nearly one size: the origin of a small one would be a matter of chance."""
        order = list(range(len(self.lessons)))
        random.Random(f"{self.config.seed}-{epoch}").shuffle(order)
        count = max(1, round(len(order) / self.config.batch))
        for index in range(count):
            yield order[index * len(order) // count : (index + 1) * len(order) // count]

    def _step(self, optimizer: torch.optim.Optimizer, epoch: int, batch: Sequence[int]) -> dict[str, Any]:
        """One step. The origin of rewards belongs to the whole batch, so all are known before any gradient is."""
        lessons = [self.lessons[index] for index in batch]
        layouts = [self._layout(self.lessons[index], self.config.draws, f"{epoch}-{index}") for index in batch]
        with torch.no_grad():
            references = [score(self.reference, layout) for layout in layouts]
            known = [score(self.model, layout) - each for layout, each in zip(layouts, references, strict=True)]
        rewards = torch.cat(known, dim=1)
        origins = rewards.mean(1, keepdim=True)
        desirable = torch.tensor([good for lesson in lessons for good in lesson.desirable], device=rewards.device)
        entry = {mode: figures(each, desirable, self.config.beta) for mode, each in zip(MODES, rewards, strict=True)}
        loss = 0.0
        for lesson, layout, reference in zip(lessons, layouts, references, strict=True):
            reward = score(self.model, layout) - reference
            good, weights = self._sides(lesson, reward.device)
            part = losses(reward, good, weights, origins, self.config.beta).sum() / len(desirable)
            part.backward()
            loss += part.item()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), _MAX_GRAD_NORM)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return {"loss": loss, "grad_norm": float(norm), **entry}

    def _sides(self, lesson: Lesson, device: torch.device) -> tuple[Tensor, Tensor]:
        """[A] which answers are desirable, and what they weigh."""
        desirable = torch.tensor(lesson.desirable, device=device)
        return desirable, torch.tensor(lesson.weights, device=device) * torch.where(desirable, *self.sides)

    def _finish(self, counters: Counters) -> Alignment:
        """Write the weights, and ask them, as they were written, about the held-out answers."""
        folder = self.out / "checkpoint"
        export(self.model, self.source, folder, self.config.seed)
        written = load_checkpoint(folder, device=self.model.embed_tokens.weight.device)
        layouts = [
            self._layout(lesson, self.config.held_out_draws, f"held out-{index}")
            for index, lesson in enumerate(self.held_out)
        ]
        with torch.no_grad():
            before, after = (
                evaluate(self.held_out, [score(model, layout) for layout in self._shown("held out", layouts)])
                for model in (self.reference, written)
            )
        alignment = Alignment(
            checkpoint=folder,
            before=before,
            after=after,
            steps=counters.step,
            questions=len(self.lessons),
            answers=sum(weight > 0 for lesson in self.lessons for weight in lesson.weights),
            left_out=self.left_out,
            desirable=self.sides[0],
            undesirable=self.sides[1],
        )
        told = {**asdict(alignment), "held_out_questions": len(self.held_out), "settings": asdict(self.config)}
        # The folder may be moved.
        del told["checkpoint"]
        write_whole(self.out / REPORT, json.dumps(_plain(told), indent=2) + "\n")
        return alignment

    def _layout(self, lesson: Lesson, draws: int, name: str) -> Layout:
        return lay_out(lesson.question, self.model.config, draws=draws, seed=f"{self.config.seed}-{name}")

    def _shown(self, name: str, items: Sequence[Item]) -> Iterator[Item]:
        """The items, with a bar for whoever waits."""
        with progress_bar(self.console) as progress:
            yield from progress.track(items, description=name)

    def _log(self, entry: dict[str, Any]) -> None:
        with (self.out / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(_plain(entry)) + "\n")


def _plain(value: Any) -> Any:
    """Numbers that JSON has, in a readable length."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.6g}")
    return value
