"""The alignment behind `calomel align`."""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeVar

import torch
from rich.console import Console
from torch import Tensor

from calomel.engine.checkpoint import CONFIG_FILE, WEIGHTS_FILE, load_checkpoint, save_checkpoint
from calomel.engine.transformer import Transformer
from calomel.prompts.tokenizer import Tokenizer
from calomel.storage import write_whole
from calomel.training.alignment.data import AlignConfig, AlignmentError, Lesson, Preference, Renderer, balance, split
from calomel.training.alignment.evaluation import MODES, Alignment, Reference, References, evaluate
from calomel.training.alignment.loss import Figures, Layout, Marks, Scores, figures, lay_out, losses, score
from calomel.training.process import Interruption, progress_bar
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


REPORT: Final = "alignment.json"
# The pass whose masks the held-out answers are scored with; those of the epochs count from 0.
_EVALUATION: Final = 1 << 20

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
        diffusion = self.model.config.diffusion
        shift, memory = int(diffusion.logit_shift), self.model.config.memory
        self.marks = Marks(diffusion.mask_token_id, diffusion.end_token_id, shift, memory)
        renderer = Renderer(
            Tokenizer.from_file(source / "tokenizer.json"),
            config,
            positions=self.model.config.max_position_embeddings,
            max_canvas=diffusion.max_canvas,
        )
        learned, held_out = split(preferences, config.held_out, config.seed)
        self.lessons = renderer.lessons(learned)
        self.held_out = renderer.lessons(held_out, with_silence=True)
        if not self.lessons:
            raise AlignmentError("there is no answer to learn from")
        self.balance = balance(learned, config.desirable, config.undesirable)
        self.answers = sum(sum(weight > 0 for weight in lesson.weights) for lesson in self.lessons)
        self.left_out = renderer.too_long
        self.console = Console(stderr=True)
        out.mkdir(parents=True, exist_ok=True)
        self.references = References(out / "reference.jsonl", self._fingerprint())
        self.interruption = Interruption()

    def go(self, *, resume: bool) -> Alignment:
        if (self.out / "state.json").is_file() and not resume:
            raise AlignmentError(f"{self.out} holds a run already: --resume goes on with it")
        if self.balance.warning:
            self.console.print(f"warning: {self.balance.warning}")
        with self.interruption:
            began = self._refer()
            parameters = [each.requires_grad_() for each in self.model.parameters()]
            optimizer = torch.optim.AdamW(
                parameters,
                lr=self.config.learning_rate,
                betas=(0.9, 0.95),
                weight_decay=self.config.weight_decay,
            )
            counters = (load_state(self.out, self.model, (optimizer,)) if resume else None) or Counters()
            counters.sessions += 1
            seen, spent = 0, -counters.seconds
            if began:
                seen = self._train(optimizer, counters)
            spent += counters.seconds
        return self._finish(counters, spent / seen if seen else float("nan"))

    def _refer(self) -> bool:
        """Score everything with the weights as they came; whether that came to its end."""
        wanted = [(lesson, number) for number in range(self.config.epochs) for lesson in self.lessons]
        wanted += [(lesson, _EVALUATION) for lesson in self.held_out]
        missing = [each for each in wanted if self.references.get(_keys(each[0]), each[1]) is None]
        for lesson, number in self._shown("reference", missing):
            if self.interruption.asked:
                return False
            self.references.add(_keys(lesson), number, self._scores(self.model, lesson, number))
        return True

    def _train(self, optimizer: torch.optim.Optimizer, counters: Counters) -> int:
        """Take the steps that are left; returns how many answers were seen."""
        batches = [batch for epoch in range(self.config.epochs) for batch in self._batches(epoch)]
        rising = max(1, round(self.config.warmup * len(batches)))
        saved, seen = counters.seconds, 0
        for number, epoch, batch in self._shown(
            "aligning", [(number, *each) for number, each in enumerate(batches)][counters.step :]
        ):
            if self.interruption.asked:
                break
            clock = time.monotonic()
            # Rising, then falling to a tenth: the last steps of a small run should not be its loudest.
            left = 1 - 0.9 * max(0.0, (number + 1 - rising) / max(1, len(batches) - rising))
            rate = self.config.learning_rate * min(1.0, (number + 1) / rising) * left
            for group in optimizer.param_groups:
                group["lr"] = rate
            entry = self._step(optimizer, epoch, batch)
            counters.step = number + 1
            counters.seconds += time.monotonic() - clock
            seen += sum(sum(weight > 0 for weight in self.lessons[index].weights) for index in batch)
            self._log({"step": counters.step, "epoch": epoch, "rate": rate, **entry})
            if counters.seconds - saved > self.config.checkpoint_minutes * 60:
                save_state(self.out, self.model, (optimizer,), counters)
                saved = counters.seconds
        save_state(self.out, self.model, (optimizer,), counters)
        return seen

    def _batches(self, epoch: int) -> Iterator[tuple[int, list[int]]]:
        """Minibatches of nearly one size: the origin of a small one would be a matter of chance."""
        order = list(range(len(self.lessons)))
        random.Random(f"{self.config.seed}-{epoch}").shuffle(order)
        count = max(1, round(len(order) / self.config.batch))
        for index in range(count):
            yield epoch, order[index * len(order) // count : (index + 1) * len(order) // count]

    def _step(self, optimizer: torch.optim.Optimizer, epoch: int, batch: Sequence[int]) -> dict[str, Any]:
        """One step. The origin of rewards belongs to the whole batch, so all are known before any gradient is."""
        layouts = [self._layout(self.lessons[index], epoch) for index in batch]
        with torch.no_grad():
            known = [
                self._rewards(score(self.model, layout), self.lessons[index], epoch)
                for index, layout in zip(batch, layouts, strict=True)
            ]
        origins, entry = self._figures(known, batch)
        count = sum(len(rewards["canvas"]) for rewards in known)
        loss = 0.0
        for index, layout in zip(batch, layouts, strict=True):
            lesson = self.lessons[index]
            part = self._loss(self._rewards(score(self.model, layout), lesson, epoch), lesson, origins) / count
            part.backward()
            loss += part.item()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return {"loss": loss, "grad_norm": float(norm), **entry}

    def _rewards(self, scores: Scores, lesson: Lesson, number: int) -> dict[str, Tensor]:
        """By mode: [A] how much likelier each answer has become, in nats (of each token, as the settings say)."""
        reference = self.references.get(_keys(lesson), number)
        if reference is None:
            raise AlignmentError("a reference score is missing")
        lengths = torch.tensor([float(answer.length) for answer in lesson.question.answers])
        found = {}
        for mode in MODES:
            now: Tensor = getattr(scores, mode)
            reward = now - torch.tensor(getattr(reference, mode), device=now.device)
            found[mode] = reward / lengths.to(now.device) if self.config.scale == "token" else reward
        return found

    def _loss(self, rewards: dict[str, Tensor], lesson: Lesson, origins: dict[str, float]) -> Tensor:
        total = rewards["canvas"].new_zeros(())
        desirable, weights = self._sides(lesson, total.device)
        for mode, share in (("canvas", self.config.canvas), ("causal", self.config.causal)):
            if share:
                each = losses(rewards[mode], desirable, weights, origins[mode], self.config.slope)
                total = total + share * each.sum()
        return total

    def _sides(self, lesson: Lesson, device: torch.device) -> tuple[Tensor, Tensor]:
        """[A] which answers are desirable, and what they weigh."""
        desirable = torch.tensor(lesson.desirable, device=device)
        weights = torch.tensor(lesson.weights, device=device)
        return desirable, weights * torch.where(desirable, self.balance.desirable, self.balance.undesirable)

    def _figures(
        self, known: Sequence[dict[str, Tensor]], batch: Sequence[int]
    ) -> tuple[dict[str, float], dict[str, Any]]:
        desirable = torch.cat([torch.tensor(self.lessons[index].desirable) for index in batch])
        origins, entry = {}, {}
        for mode in MODES:
            rewards = torch.cat([each[mode] for each in known]).cpu()
            found: Figures = figures(rewards, desirable, self.config.slope)
            origins[mode] = found.origin
            entry[mode] = {**asdict(found), "margin": found.margin}
        return origins, entry

    def _finish(self, counters: Counters, seconds_per_answer: float) -> Alignment:
        """Write the weights, and ask them, as they were written, about the held-out answers."""
        folder = self.out / "checkpoint"
        export(self.model, self.source, folder, self.config.seed)
        before = [self.references.get(_keys(lesson), _EVALUATION) for lesson in self.held_out]
        known = [each for each in before if each is not None]
        after: list[Reference] = []
        if len(known) == len(self.held_out):
            written = load_checkpoint(folder, device=self.model.embed_tokens.weight.device)
            after = [self._scores(written, lesson, _EVALUATION) for lesson in self._shown("held out", self.held_out)]
        lessons = self.held_out if after else []
        alignment = Alignment(
            checkpoint=folder,
            before=evaluate(lessons, known[: len(after)]),
            after=evaluate(lessons, after),
            steps=counters.step,
            questions=len(self.lessons),
            answers=self.answers,
            left_out=self.left_out,
            balance=self.balance,
            seconds_per_answer=seconds_per_answer,
        )
        told = {
            **alignment.to_json(),
            "seconds": round(counters.seconds, 1),
            "held_out_questions": len(self.held_out),
            "settings": asdict(self.config),
        }
        write_whole(self.out / REPORT, json.dumps(told, indent=2) + "\n")
        return alignment

    def _scores(self, model: Transformer, lesson: Lesson, number: int) -> Reference:
        with torch.no_grad():
            scores = score(model, self._layout(lesson, number))
        return Reference(tuple(scores.canvas.tolist()), tuple(scores.causal.tolist()))

    def _layout(self, lesson: Lesson, number: int) -> Layout:
        draws = self.config.held_out_draws if number == _EVALUATION else self.config.draws
        return lay_out(lesson.question, self.marks, draws=draws, seed=self.config.seed, number=number)

    def _fingerprint(self) -> str:
        weights = hashlib.sha256((self.source / WEIGHTS_FILE).read_bytes()).hexdigest()
        said = "\n".join(key for lesson in (*self.lessons, *self.held_out) for key in _keys(lesson))
        return hashlib.sha256(f"{weights}\n{self.config.fingerprint()}\n{said}".encode()).hexdigest()

    def _shown(self, name: str, items: Sequence[Item]) -> Iterator[Item]:
        """The items, with a bar for whoever waits."""
        with progress_bar(self.console) as progress:
            yield from progress.track(items, description=name)

    def _log(self, entry: dict[str, Any]) -> None:
        with (self.out / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(_plain(entry)) + "\n")


def _keys(lesson: Lesson) -> tuple[str, ...]:
    return tuple(answer.key for answer in lesson.question.answers)


def _plain(value: Any) -> Any:
    """Numbers that JSON has, in a readable length."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, float):
        return None if value != value else float(f"{value:.6g}")  # noqa: PLR0124  (NaN)
    return value
