"""One hole, answered by the model alone and, where something is recalled, by that."""

from __future__ import annotations

from dataclasses import dataclass, replace

from calomel.bench.holes import Hole
from calomel.bench.model import OpenModel
from calomel.suggest.fill import FillRequest
from calomel.suggest.recall import recall
from calomel.suggest.recall_worth import draft_features, own_features, prior_features


@dataclass(frozen=True, slots=True)
class RecallSample:
    """What is known of a hole.

    Attributes:
        own: features of the model's own answer; `own_right` whether it is the truth.
        prior: features of the recalled text without the model; None where nothing is recalled that fits.
        draft: the same with what the model says of it.
        draft_right: whether the recalled text is the truth.
    """

    own: dict[str, float]
    own_right: bool
    prior: dict[str, float] | None = None
    draft: dict[str, float] | None = None
    draft_right: bool = False


def sample(model: OpenModel, hole: Hole, max_context: int) -> RecallSample:
    """The own answer of `model` to `hole`, and its judgement of what is recalled. Raises the engine's errors."""
    asked = FillRequest(
        prefix=hole.prefix,
        suffix=hole.suffix,
        path=hole.path,
        max_tokens=hole.max_tokens,
        max_context=max_context,
        recall=False,  # of the doors' way to ask, this alone is left out
    )
    fill = model.filler.fill(asked)
    own = own_features(fill.result.log_probs, fill.result.end_log_prob)
    bare = RecallSample(own, right(fill.text, hole))
    found = recall(hole.prefix, hole.suffix)
    tokens = 0 if found is None else len(model.tokenizer.encode(found.text))
    if found is None or not 1 <= tokens <= hole.max_tokens:
        return bare
    judging, owed = model.filler.judging(asked, found.text)
    judged = model.engine.submit(judging).result()
    return replace(
        bare,
        prior=prior_features(found, tokens),
        draft=draft_features(found, judged.log_probs[owed:], judged.end_log_prob),
        draft_right=right(found.text, hole),
    )


def right(text: str, hole: Hole) -> bool:
    """Whether `text` is what stood in the hole, but for white space at its end."""
    return text.rstrip() == hole.answer.rstrip()
