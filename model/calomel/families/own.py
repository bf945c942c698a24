"""Calomel's own decoder: a causal context, a canvas that sees both ways, trained by `calomel train`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from calomel.engine import Engine, ModelConfig, Serving, load_checkpoint
from calomel.engine.quantize import quantize
from calomel.families.estimate import Estimate, EstimateOptions, decoder_estimate
from calomel.families.facts import FamilyFacts, Published
from calomel.families.family import Family, OpenOptions
from calomel.families.generation import Generation
from calomel.families.precision import dtype_of
from calomel.families.style import PromptStyle


def _recognises(raw: Mapping[str, Any]) -> bool:
    return isinstance(raw.get("diffusion"), Mapping)


def _config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
    del folder
    return ModelConfig.from_dict(raw)


def _open(folder: Path, options: OpenOptions) -> Serving:
    model = load_checkpoint(folder, dtype=dtype_of(options.dtype, options.device), device=options.device)
    if options.quantize is not None:
        quantize(model, options.quantize)
    return Engine(
        model,
        device=options.device,
        threads=options.threads,
        cache_tokens=options.cached,
        spare_tokens=options.spare,
        max_batch=options.max_batch,
    )


def _estimate(raw: Mapping[str, Any], options: EstimateOptions) -> Estimate:
    return decoder_estimate(raw, options, canvas=ModelConfig.from_dict(raw).diffusion.max_canvas)


OWN: Final = Family(
    name="calomel",
    recognises=_recognises,
    config=_config,
    open=_open,
    estimate=_estimate,
    prompts=PromptStyle(fim="calomel", edit="calomel", mask="<|mask|>", ends=("<|end|>",)),
    generation=Generation(
        policy="prefix:0.8",
        max_steps=8,
        fill_canvases=(15,),
        edit_canvas=48,
        source="`calomel bench decoding`, docs/results",
    ),
    facts=FamilyFacts(
        title="Calomel's own",
        checkpoints=(Published("calomel-nano (shipped)", 0.006, "Apache-2.0"),),
        attention="causal context, canvas in both directions",
        mask="`<|mask|>`, from its config.json",
        shift=False,
        block=None,
        sources=("this repository",),
        parity="tests/engine/test_parity.py",
        measured="`calomel bench infill`, `calomel bench speed`",
    ),
)
FAMILIES: Final = (OWN,)
