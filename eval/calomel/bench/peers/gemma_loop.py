"""DiffusionGemma's denoising loop beside `generate` of transformers, on the same random weights.

Both run in turns, with the same seed, and must draw the same tokens. The context is encoded anew by both. What is
compared is processor time on one thread: neither waits for anything, and threads that wait for each other would count.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from calomel.bench.peers.peer import PeerUnavailableError
from calomel.bench.report import Table, Value, number_cell

TURNS, QUICK_TURNS = 9, 1


@dataclass(frozen=True, slots=True)
class LoopSize:
    """Sizes of a random network and of what it is asked. By default large enough for its own work to count.

    Attributes:
        canvas: tokens.
        context: tokens.
        steps: denoising steps of the canvas.
        hidden: width; experts and heads follow it.
        layers: one of them in full attention.
        vocabulary: tokens.
    """

    canvas: int = 256
    context: int = 512
    steps: int = 8
    hidden: int = 256
    layers: int = 6
    vocabulary: int = 8192


@dataclass(frozen=True, slots=True)
class LoopTimes:
    """Processor seconds of each turn, ours and theirs, and whether all tokens were equal."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    equal: bool
    steps: int


def measure_loop(turns: int, size: LoopSize | None = None, clock: Callable[[], float] = time.process_time) -> LoopTimes:
    """One canvas in each of `turns`, after one that warms both.

    Raises:
        PeerUnavailableError: transformers is not installed, or does not know DiffusionGemma.
    """
    import torch

    from calomel.engine import Request, SamplingParams
    from calomel.families.diffusion_gemma import DIFFUSION_GEMMA
    from calomel.families.family import OpenOptions

    asked = size or LoopSize()
    ours: list[float] = []
    theirs: list[float] = []
    equal = True
    with TemporaryDirectory(prefix="calomel-peers-") as name, _one_thread():
        reference = _write(Path(name), asked)
        generator = torch.Generator().manual_seed(1)
        context = torch.randint(8, asked.vocabulary - 192, (asked.context,), generator=generator)
        request = Request(
            tuple(context.tolist()),
            max_new_tokens=asked.canvas,
            canvas_lengths=(asked.canvas,),
            sampling=SamplingParams(temperature=1.0, seed=1),
            policy="entropy_bound:0.1",
            max_steps=asked.steps,
            reuse=0,
        )
        with DIFFUSION_GEMMA.open(Path(name), OpenOptions(dtype="float32", threads=1)) as engine:
            for _ in range(turns + 1):
                began = clock()
                found = engine.submit(request).result()
                ours.append(clock() - began)
                torch.manual_seed(1)
                began = clock()
                output = reference.generate(context[None], max_new_tokens=asked.canvas)
                theirs.append(clock() - began)
                expected = output.sequences[0, asked.context : asked.context + len(found.ids)].tolist()
                equal = equal and list(found.ids) == expected
    return LoopTimes(tuple(ours[1:]), tuple(theirs[1:]), equal, found.steps)


def loop_keys(times: LoopTimes) -> dict[str, Value]:
    """Milliseconds of both, their ratio (median, lowest and highest of the turns), and whether the tokens are equal."""
    ratios = [mine / other for mine, other in zip(times.ours, times.theirs, strict=True)]
    return {
        "diffusion_gemma_vs_generate": median(ratios),
        "diffusion_gemma_vs_generate_lowest": min(ratios),
        "diffusion_gemma_vs_generate_highest": max(ratios),
        "diffusion_gemma_tokens_equal": times.equal,
        "diffusion_gemma_cpu_ms_ours": median(times.ours) * 1e3,
        "diffusion_gemma_cpu_ms_generate": median(times.theirs) * 1e3,
        "diffusion_gemma_turns": len(ratios),
    }


def loop_table(times: LoopTimes) -> Table:
    """Both in one row."""
    ratios = [mine / other for mine, other in zip(times.ours, times.theirs, strict=True)]
    row = (
        f"{times.steps} steps",
        number_cell(median(times.ours) * 1e3, 0),
        number_cell(median(times.theirs) * 1e3, 0),
        f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
        "equal" if times.equal else "not equal",
    )
    columns = ("one canvas", "ours, processor ms", "generate, processor ms", "ratio", "tokens")
    return Table("DiffusionGemma's loop", columns, (row,))


@contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _write(folder: Path, size: LoopSize) -> Any:
    """A random network as published, in `folder`; returns it as transformers opens it."""
    import torch

    try:
        library = import_module("transformers")
        place = "transformers.models.diffusion_gemma"
        config_class = import_module(f"{place}.configuration_diffusion_gemma").DiffusionGemmaConfig
        model_class = import_module(f"{place}.modeling_diffusion_gemma").DiffusionGemmaForBlockDiffusion
    except ImportError as error:
        raise PeerUnavailableError(
            "transformers is not installed, or older than DiffusionGemma: pip install -e '.[peers]'"
        ) from error
    library.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    model = model_class(config_class.from_dict(_config(size)))
    with torch.no_grad():
        for name, weights in model.named_parameters():
            near_one = "norm" in name or "scal" in name
            std = 1.0 if "embed_tokens" in name else 0.1 if near_one else 0.2
            torch.nn.init.normal_(weights, float(near_one), std)
            if "post_attention" in name or "post_feedforward_layernorm.weight" in name:
                # With all that layers add, random weights answer each canvas by another one: none is ever stable.
                weights.mul_(0.5)
    model.save_pretrained(folder)
    generation = {**_GENERATION, "max_denoising_steps": size.steps, "max_new_tokens": size.canvas}
    (folder / "generation_config.json").write_text(json.dumps(generation), encoding="utf-8")
    return model_class.from_pretrained(folder, local_files_only=True)


# As in google/diffusiongemma-26B-A4B-it.
_GENERATION: dict[str, Any] = {
    "confidence_threshold": 0.005,
    "eos_token_id": [1, 5],
    "pad_token_id": 0,
    "sampler_config": {"_cls_name": "EntropyBoundSamplerConfig", "entropy_bound": 0.1},
    "stability_threshold": 1,
    "t_max": 0.8,
    "t_min": 0.4,
}


def _config(size: LoopSize) -> dict[str, Any]:
    """The contents of config.json, as far as they are not the defaults of transformers."""
    return {
        "model_type": "diffusion_gemma",
        "canvas_length": size.canvas,
        "dtype": "float32",
        "image_token_id": size.vocabulary - 1,
        "text_config": {
            "model_type": "diffusion_gemma_text",
            "eos_token_id": 1,
            "pad_token_id": 0,
            "final_logit_softcapping": 30.0,
            "hidden_size": size.hidden,
            "intermediate_size": 2 * size.hidden,
            "moe_intermediate_size": size.hidden // 2,
            "num_experts": 16,
            "top_k_experts": 2,
            "head_dim": size.hidden // 8,
            "global_head_dim": size.hidden // 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "num_global_key_value_heads": 1,
            "num_hidden_layers": size.layers,
            "layer_types": ["sliding_attention"] * (size.layers - 1) + ["full_attention"],
            "sliding_window": size.canvas // 2,
            "max_position_embeddings": 4096,
            "vocab_size": size.vocabulary,
            "use_bidirectional_attention": "vision",
            "rope_parameters": {
                "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1e6, "rope_type": "proportional"},
                "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"},
            },
        },
        "tie_word_embeddings": True,
        "vision_config": {
            "model_type": "gemma4_vision",
            "head_dim": 8,
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_attention_heads": 2,
            "num_hidden_layers": 1,
            "num_key_value_heads": 2,
            "position_embedding_size": 16,
        },
    }
