"""A decoder that is more, or less, inclined to end its answer."""

from __future__ import annotations

from torch import Tensor

from calomel.engine import Transformer


class BiasedEnd(Transformer):
    """The same weights as `model`, which it shares; `bias` is added to the end token's logit.

    Attributes:
        bias: in nats; to be changed only while no request is served.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__(model.config)
        self.load_state_dict(model.state_dict(), assign=True)
        if model.config.tie_word_embeddings:
            self.lm_head.weight = self.embed_tokens.weight
        # Not part of the state.
        self.inverse_frequency = model.inverse_frequency
        self.bias = 0.0

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states [N, C] to logits [N, V] in float32."""
        out = super().logits(hidden)
        if self.bias:
            out[:, self.config.diffusion.end_token_id] += self.bias
        return out
