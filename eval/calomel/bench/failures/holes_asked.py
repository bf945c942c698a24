"""Held-out holes, asked and judged; and how likely the truth was to the model, token by token."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from calomel.bench.answer import matches
from calomel.bench.failures.hole_case import HoleCase
from calomel.bench.failures.hole_kinds import hole_kind, hole_kinds
from calomel.bench.failures.verdict import TAIL_CHARACTERS, Verdict, saved_characters
from calomel.bench.failures.words import place_of, word_before
from calomel.bench.holes import Hole, TokenMeasure
from calomel.bench.journal import Journal
from calomel.bench.model import OpenModel
from calomel.bench.progress import Progress
from calomel.prompts.parts import PromptParts
from calomel.suggest.fill import DEFAULT_CONTEXT


@dataclass(frozen=True, slots=True)
class Likelihood:
    """How likely the truth was, in nats, read left to right.

    Attributes:
        inside_word: the cursor stands in a word, and the truth goes on with it.
        tokens: of each of the truth's.
        end: of the end behind them.
    """

    inside_word: bool
    tokens: tuple[float, ...]
    end: float

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict`."""
        return cls(bool(record["inside_word"]), tuple(record["tokens"]), float(record["end"]))


@dataclass(frozen=True, slots=True)
class AskedHole:
    """One hole; the likelihood is None where a checkpoint has no causal mode."""

    verdict: Verdict
    likelihood: Likelihood | None


def ask_holes(
    holes: Sequence[Hole], model: OpenModel, journal: Journal, progress: Progress, *, deadline: float | None = None
) -> list[AskedHole]:
    """Every hole once with the shipped policy; ends early at `deadline`, in seconds of `time.monotonic`."""
    progress.phase("holes", len(holes))
    found: list[AskedHole] = []
    for hole in holes:
        record = journal.get(f"hole|{hole.key}")
        if record is None:
            if deadline is not None and time.monotonic() > deadline:
                continue
            record = _asked(hole, model)
            journal.put(f"hole|{hole.key}", record)
        likelihood = record["likelihood"]
        found.append(
            AskedHole(
                Verdict.from_json(record["verdict"]), None if likelihood is None else Likelihood.from_json(likelihood)
            )
        )
        progress.step(hole.row)
    return found


def judged(hole: Hole, answer: str, *, cut: bool, seen: str, measure: TokenMeasure) -> Verdict:
    """What an answer is."""
    case = HoleCase(hole.language, hole.prefix, hole.suffix, hole.answer, answer, seen, cut)
    right = matches(hole, answer)
    kind = None if right else hole_kind(case)
    return Verdict(
        key=hole.key,
        source="holes",
        row=hole.row,
        language=hole.language,
        place=place_of(hole.prefix, hole.language),
        kind=kind,
        also=() if right else tuple(each for each in hole_kinds(case) if each != kind),
        saved=saved_characters(hole.answer),
        tail=hole.prefix[-TAIL_CHARACTERS:],
        truth=hole.answer,
        answer=answer,
        tokens=measure.count(hole.answer),
        said=measure.count(answer),
    )


def _asked(hole: Hole, model: OpenModel) -> dict[str, Any]:
    fill = model.fill(hole, policy=None, max_steps=None, max_tokens=hole.max_tokens)
    # As `fill` renders it.
    room = min(DEFAULT_CONTEXT, model.engine.config.max_position_embeddings - hole.max_tokens)
    parts = PromptParts(path=hole.path, prefix=hole.prefix, suffix=hole.suffix)
    prompt = model.filler.manner.renderer.render(parts, room)
    seen = model.tokenizer.decode(prompt.context)
    tokens = tuple(model.tokenizer.encode(hole.answer))
    verdict = judged(hole, fill.text, cut=fill.finish_reason == "length", seen=seen, measure=model.measure)
    likelihood = None
    if model.verifiable:
        from calomel.engine import Request  # imports torch

        asked = Request(context=prompt.context, given=tokens, reuse=prompt.reuse)
        result = model.engine.submit(asked).result()
        inside = bool(word_before(hole.prefix)) and (hole.answer[:1].isalnum() or hole.answer[:1] == "_")
        likelihood = asdict(Likelihood(inside, result.log_probs, float(result.end_log_prob or 0.0)))
    return {"verdict": verdict.to_json(), "likelihood": likelihood}
