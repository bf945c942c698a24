"""Everything that decides an alignment."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final, Literal

from calomel.training.preference.preference import AlignmentError

Scale = Literal["sum", "token"]

# KTO's and ELBO-KTO's own; of sums over an answer's tokens.
_BETA_OF_SUMS: Final = 0.1
# So many tokens an answer has, roughly: the same slope at the origin for a typical one.
_TOKENS: Final = 20


@dataclass(frozen=True, slots=True)
class AlignConfig:
    """An alignment.

    Attributes:
        learning_rate: of AdamW, behind the warm-up. On nano 2e-4 makes all answers less likely within six steps, and
            3e-5 none.
        epochs: how often every answer is seen; each time with other masks.
        batch: questions in a minibatch; each has two answers or three.
        draws: masks of an answer in each epoch.
        beta: of the loss; None for the one that belongs to `scale`.
        scale: rewards are sums over an answer's tokens (`sum`; a long answer saturates first: its reward is many
            times a short one's), or means (`token`; length tells nothing, but a token of a short answer counts more).
        canvas: weight of the loss on canvases.
        causal: weight of the loss on exact likelihoods, by which drafts and edits are judged. Behind six steps on nano
            their margin is 1.6 nats with it and 0.6 without, that of canvases the same.
        desirable, undesirable: weights of the two kinds of answers; None for balance.
        warmup: share of the steps on which the learning rate rises.
        weight_decay: of AdamW.
        max_grad_norm: longer gradients are cut to this.
        context: tokens of prompt at most, where a question does not say fewer.
        longest: answers of more tokens are left out.
        fill_canvas, edit_canvas: tokens of a canvas, as inference has them.
        held_out: share of groups that nothing is learned from.
        held_out_draws: masks of an answer in an evaluation.
        seed: of masks, order and what is held out.
        threads: of the processor; 0 for PyTorch's choice.
        checkpoint_minutes: how often the state is saved.
    """

    learning_rate: float = 3e-5
    epochs: int = 2
    batch: int = 8
    draws: int = 4
    beta: float | None = None
    scale: Scale = "sum"
    canvas: float = 1.0
    causal: float = 1.0
    desirable: float | None = None
    undesirable: float | None = None
    warmup: float = 0.1
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    context: int = 1024
    longest: int = 128
    fill_canvas: int = 16
    edit_canvas: int = 48
    held_out: float = 0.1
    held_out_draws: int = 8
    seed: int = 0
    threads: int = 0
    checkpoint_minutes: float = 5.0

    def __post_init__(self) -> None:
        """Raises AlignmentError for numbers that make no sense together."""
        if self.canvas <= 0 and self.causal <= 0:
            raise AlignmentError("both losses have no weight: nothing would be learned")
        if min(self.epochs, self.batch, self.draws, self.held_out_draws, self.fill_canvas, self.edit_canvas) < 1:
            raise AlignmentError("epochs, batch, draws and canvases must be 1 or more")
        if not 0 <= self.held_out < 1:
            raise AlignmentError("the share that is held out must be 0 or more, and less than 1")

    @property
    def slope(self) -> float:
        """Beta as it is used."""
        if self.beta is not None:
            return self.beta
        return _BETA_OF_SUMS if self.scale == "sum" else _BETA_OF_SUMS * _TOKENS

    def fingerprint(self) -> str:
        """A run that is resumed has the same."""
        fields = asdict(self)
        for name in ("threads", "checkpoint_minutes"):
            del fields[name]
        return json.dumps(fields, sort_keys=True)
