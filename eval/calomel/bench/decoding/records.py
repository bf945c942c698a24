"""What one variant did with one hole, and the choices between the answers of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from calomel.bench.answer import matches
from calomel.bench.decoding.asker import Asker
from calomel.bench.decoding.variants import CHOICES, VARIANTS, Variant
from calomel.bench.holes import Hole


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer.

    Attributes:
        text: as inserted.
        right: it is what was there.
        began: characters of the truth that its beginning has, as a share of them.
        forwards: behind the prompt.
        log_prob: of the text and its end, read left to right; None where nobody asked.
        tokens: of these.
    """

    text: str
    right: bool
    began: float
    forwards: int
    log_prob: float | None = None
    tokens: int = 0

    def to_json(self) -> dict[str, Any]:
        """For `json.dumps`."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`."""
        return cls(**record)


Answers = Mapping[str, Answered]
"""By variant, of one hole."""


def answers(hole: Hole, asker: Asker, variants: Sequence[Variant] = VARIANTS) -> dict[str, Answered]:
    """Every variant's answer; those that a choice is made of are scored."""
    found: dict[str, Answered] = {}
    scored = {name for names in CHOICES.values() for name in names}
    scores: dict[str, tuple[float, int]] = {}
    for variant in variants:
        text, forwards = asker.ask(variant, hole)
        found[variant.name] = Answered(text, matches(hole, text), begun(hole.answer, text), forwards)
    for name in (name for name in found if name in scored):
        text = found[name].text
        scores[text] = scores.get(text) or asker.likelihood(hole, text)
        log_prob, tokens = scores[text]
        found[name] = replace(found[name], log_prob=log_prob, tokens=tokens)
    return found


def choices(answered: Answers) -> dict[str, Answered]:
    """The likeliest of several answers, by its sum and by its mean; forwards are those of all and one to read each."""
    found: dict[str, Answered] = {}
    for name, parts in CHOICES.items():
        if any(part not in answered or answered[part].log_prob is None for part in parts):
            continue
        texts = [answered[part] for part in parts]
        forwards = sum(text.forwards for text in texts) + len({text.text for text in texts})
        by_sum = max(texts, key=lambda text: text.log_prob or 0.0)
        by_mean = max(texts, key=lambda text: (text.log_prob or 0.0) / max(1, text.tokens))
        found[f"{name}, likelier as a whole"] = replace(by_sum, forwards=forwards)
        found[f"{name}, likelier a token"] = replace(by_mean, forwards=forwards)
        # What no choice can exceed.
        best = max(texts, key=lambda text: (text.right, text.began))
        found[f"{name}, if one knew"] = replace(best, forwards=forwards)
    return found


def begun(truth: str, answer: str) -> float:
    """The share of the truth's visible characters that the beginning of the answer has right."""
    wanted, said = "".join(truth.split()), "".join(answer.split())
    if not wanted:
        return 1.0
    return next((at for at, (one, other) in enumerate(zip(wanted, said, strict=False)) if one != other),
                min(len(wanted), len(said))) / len(wanted)  # fmt: skip
