"""A model that says what a script tells it to, as a folder of weights that every door loads like any other.

Its layers add nothing. Its memory of the last three tokens is the script: what stands in the table for them is a code
of the token that follows, and the head reads that code. So all that is real stays real: tokenizer, prompts, canvases,
policies, filters.
"""

from __future__ import annotations

from pathlib import Path

import torch

from calomel.engine import DiffusionConfig, ModelConfig, Transformer
from calomel.engine.checkpoint import save_checkpoint
from calomel.engine.memory import MemoryConfig
from calomel.prompts.tokenizer import Tokenizer
from calomel.weights import nano_path

_WIDTH = 64


def write_model(folder: Path, script: dict[str, str]) -> Path:
    """A model that answers each text of `script` by what stands there for it, and is sure of nothing else."""
    tokenizer = Tokenizer.from_file(nano_path() / "tokenizer.json")
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=_WIDTH,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=32768,
        tie_word_embeddings=False,
        memory=MemoryConfig(1 << 12, _WIDTH, (tokenizer.region, tokenizer.near), tokenizer.middle),
        diffusion=DiffusionConfig(
            mask_token_id=tokenizer.mask, end_token_id=tokenizer.end, max_canvas=64, logit_shift=True
        ),
    )
    model = Transformer(config)
    assert model.memory is not None
    codes = torch.nn.functional.normalize(
        torch.randn(tokenizer.vocab_size, _WIDTH, generator=torch.Generator().manual_seed(1)), dim=-1
    )
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.fill_(1.0 if "norm" in name else 0.0)
        # Behind the last norm a code has the length 8: 16 nats between the token and those of unlike codes.
        model.lm_head.weight.copy_(codes * 4)
        model.memory.projection.weight.copy_(torch.cat((torch.zeros(_WIDTH, _WIDTH), torch.eye(_WIDTH)), dim=1))
        # Behind a token that nothing is known of, the answer ends; behind a masked one, anything may come.
        model.embed_tokens.weight.copy_((codes[tokenizer.end] / 100).expand(tokenizer.vocab_size, -1))
        model.embed_tokens.weight[tokenizer.mask] = 0
        for before, answer in script.items():
            known = len(tokenizer.encode(before))
            apart = [*tokenizer.encode(before), *tokenizer.encode(answer)]
            together = tokenizer.encode(before + answer)
            # The last token before the hole may be one that it cuts.
            for text, first in ((apart, known), (together, max(0, known - 1))):
                padded = [0, 0, 0, *text, tokenizer.end]
                for at in range(first + 3, len(padded)):
                    last = torch.tensor([padded[at - 3 : at]])
                    model.memory.tables.weight[model.memory.entries(last)[0, 1]] = codes[padded[at]]
    save_checkpoint(model, folder, abilities={"kinds": ["fill", "edit"], "edit_region": _REGION})
    for name in ("tokenizer.json", "calibrator.json", "recall.json"):
        (folder / name).write_bytes((nano_path() / name).read_bytes())
    return folder


_REGION = {"above": 1, "below": 2, "characters": 140, "context": 512}
