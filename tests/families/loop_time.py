"""Processor seconds of one canvas: DiffusionGemma's loop beside `generate`, on the same random weights.

`python -m tests.families.loop_time [TURNS]` prints both and their ratio. They run in turns, with the same seed, and
must give the same tokens. The context is encoded anew by both.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch
from tests.families.published import diffusion_gemma as published
from tests.families.published.layout import write_config, write_weights
from transformers.models.diffusion_gemma.modeling_diffusion_gemma import DiffusionGemmaForBlockDiffusion

from calomel.engine import Request, SamplingParams
from calomel.families.diffusion_gemma import DIFFUSION_GEMMA
from calomel.families.family import OpenOptions

CANVAS, CONTEXT, STEPS = 256, 512, 8


def size() -> dict[str, Any]:
    """A network large enough for its own work to count: 15 million parameters, a vocabulary of 8,192."""
    raw = published.config(canvas=CANVAS)
    raw["image_token_id"] = 8191
    raw["text_config"] |= {
        "hidden_size": 256,
        "intermediate_size": 512,
        "moe_intermediate_size": 128,
        "num_experts": 16,
        "head_dim": 32,
        "global_head_dim": 64,
        "sliding_window": 128,
        "vocab_size": 8192,
        **published.layers(6),
    }
    return raw


def main(turns: int) -> None:
    """Print the figures."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        raw = size()
        write_config(folder, raw)
        write_config(folder, published.generation(max_denoising_steps=STEPS), "generation_config.json")
        write_weights(folder, published.state(raw), shards=2)
        reference: Any = DiffusionGemmaForBlockDiffusion.from_pretrained(folder, local_files_only=True)
        context = torch.randint(published.FIRST_TEXT, 8000, (CONTEXT,), generator=torch.Generator().manual_seed(1))
        sampling = SamplingParams(temperature=1.0, seed=1)
        request = Request(
            tuple(context.tolist()),
            max_new_tokens=CANVAS,
            canvas_lengths=(CANVAS,),
            sampling=sampling,
            policy="entropy_bound:0.1",
            max_steps=STEPS,
            reuse=0,
        )
        ours: list[float] = []
        theirs: list[float] = []
        with DIFFUSION_GEMMA.open(folder, OpenOptions(dtype="float32")) as engine:
            for _ in range(turns + 1):
                began = time.process_time()
                found = engine.submit(request).result()
                ours.append(time.process_time() - began)
                torch.manual_seed(1)
                began = time.process_time()
                output = reference.generate(context[None], max_new_tokens=CANVAS)
                theirs.append(time.process_time() - began)
                expected = output.sequences[0, CONTEXT : CONTEXT + len(found.ids)].tolist()
                if list(found.ids) != expected:
                    raise SystemExit("the tokens differ")
    ratios = [mine / other for mine, other in zip(ours[1:], theirs[1:], strict=True)]
    sys.stdout.write(
        f"ours {median(ours[1:]):.3f} s, generate {median(theirs[1:]):.3f} s, {found.steps} steps of {CANVAS} tokens\n"
        f"ratio {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), {turns} turns\n"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
