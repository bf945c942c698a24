"""What families whose network is our own decoder share: its tensors in published names, and opening it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import torch

from calomel.engine import Engine, ModelConfig, Transformer
from calomel.engine.checkpoint import tensor_table
from calomel.engine.quantize import Quantization, quantize_tensor
from calomel.engine.transformer import inverse_frequency
from calomel.families.family import OpenOptions
from calomel.families.placing import Place, load_into
from calomel.families.precision import dtype_of
from calomel.families.shards import Shards

_ROUTER_BIAS: Final = "expert_bias"


def qwen_places(config: ModelConfig) -> Iterator[Place]:
    """Where the tensors of a Qwen3-, Qwen2.5-, Llama- or Qwen3-MoE-shaped checkpoint go."""
    for ours, theirs in tensor_table(config):
        yield Place(ours, theirs)


def frequencies_and_ties(name: str) -> bool:
    """Published tensors that nobody needs: frequencies that follow from the configuration, and a tied head."""
    return name.endswith("rotary_emb.inv_freq") or name == "lm_head.weight"


def load_decoder(
    folder: Path,
    config: ModelConfig,
    places: Iterable[Place],
    *,
    dtype: torch.dtype,
    device: str = "cpu",
    quantize: Quantization | None = None,
    ignored: Callable[[str], bool] = frequencies_and_ties,
) -> Transformer:
    """Our decoder with the tensors in `folder`. Raises CheckpointError when they do not fit.

    With `quantize`, every matrix is rounded as soon as it is there: no more than one is whole at a time.
    """
    with torch.device("meta"):
        model = Transformer(config)

    def placed(name: str) -> None:
        if quantize is not None:
            quantize_tensor(model, name, quantize)

    load_into(
        model, places, Shards(folder), dtype=dtype, device=device, ignored=ignored, keep=_router_bias, placed=placed
    )
    model.inverse_frequency = inverse_frequency(config).to(device)
    return model.requires_grad_(requires_grad=False).eval()


def open_decoder(
    folder: Path,
    options: OpenOptions,
    config: ModelConfig,
    places: Iterable[Place],
    *,
    ignored: Callable[[str], bool] = frequencies_and_ties,
) -> Engine:
    """The same as a running engine, as `options` say."""
    dtype = dtype_of(options.dtype, options.device)
    model = load_decoder(
        folder, config, places, dtype=dtype, device=options.device, quantize=options.quantize, ignored=ignored
    )
    return Engine(
        model,
        device=options.device,
        threads=options.threads,
        cache_tokens=options.cached,
        spare_tokens=options.spare,
        max_batch=options.max_batch,
    )


def _router_bias(name: str) -> torch.dtype | None:
    # It decides between experts whose scores differ by less than bfloat16 can tell.
    return torch.float32 if name.endswith(_ROUTER_BIAS) else None
