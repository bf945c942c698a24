"""DiffusionGemma as google/diffusiongemma-26B-A4B-it is laid out, with tiny random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tests.families.published.layout import write_config, write_weights
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from torch import Tensor
from transformers.models.diffusion_gemma.configuration_diffusion_gemma import DiffusionGemmaConfig
from transformers.models.diffusion_gemma.modeling_diffusion_gemma import DiffusionGemmaForBlockDiffusion

CONTROLS = ("<pad>", "<eos>", "<bos>", "<unk>", "<|turn>", "<turn|>", "<|channel>", "<channel|>")
# Gemma's vocabulary: control tokens, a token for each byte, characters (a space is written as below), merged pairs.
_BYTES = tuple(f"<0x{value:02X}>" for value in range(256))
_CHARACTERS = ("▁", "\n", *(chr(code) for code in range(33, 127)))
_MERGES = ("▁ ▁", "▁▁ ▁▁", "r e", "t u", "re tu", "r n", "retu rn", "▁ return", "d e", "de f", "i n", "▁ =")
_VOCABULARY = (*CONTROLS, *_BYTES, *_CHARACTERS, *(pair.replace(" ", "") for pair in _MERGES), "<|image|>")
PAD, FIRST_TEXT, PICTURE = 0, len(CONTROLS), len(_VOCABULARY) - 1
ENDS = (1, 5)
VOCABULARY = len(_VOCABULARY)
WINDOW = 24
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|turn>"
    "{{ 'model' if message.role == 'assistant' else message.role }}\n{{ message.content | trim }}<turn|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn>model\n{% endif %}"
)


def config() -> dict[str, Any]:
    """The contents of config.json, with the published fields."""
    text = {
        "model_type": "diffusion_gemma_text",
        "attention_bias": False,
        "bos_token_id": 2,
        "eos_token_id": ENDS[0],
        "final_logit_softcapping": 30.0,
        "global_head_dim": 16,
        "head_dim": 8,
        "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": 32,
        "intermediate_size": 48,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
        "max_position_embeddings": 4096,
        "moe_intermediate_size": 16,
        "num_attention_heads": 4,
        "num_experts": 4,
        "num_global_key_value_heads": 1,
        "num_hidden_layers": 3,
        "num_key_value_heads": 2,
        "pad_token_id": PAD,
        "rms_norm_eps": 1e-06,
        "rope_parameters": {
            "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional"},
            "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
        },
        "sliding_window": WINDOW,
        "tie_word_embeddings": True,
        "top_k_experts": 2,
        "use_bidirectional_attention": "vision",
        "vocab_size": VOCABULARY,
    }
    vision = {
        "model_type": "gemma4_vision",
        "head_dim": 8,
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_attention_heads": 2,
        "num_hidden_layers": 1,
        "num_key_value_heads": 2,
        "position_embedding_size": 16,
    }
    return {
        "architectures": ["DiffusionGemmaForBlockDiffusion"],
        "model_type": "diffusion_gemma",
        "canvas_length": 16,
        "dtype": "float32",
        "image_token_id": PICTURE,
        "text_config": text,
        "tie_word_embeddings": True,
        "vision_config": vision,
    }


def layers(count: int) -> dict[str, Any]:
    """The fields that say how many layers there are."""
    return {"num_hidden_layers": count, "layer_types": ["sliding_attention"] * (count - 1) + ["full_attention"]}


def generation(**changed: Any) -> dict[str, Any]:
    """The contents of generation_config.json."""
    return {
        "confidence_threshold": 0.005,
        "eos_token_id": list(ENDS),
        "max_denoising_steps": 8,
        "max_new_tokens": 256,
        "pad_token_id": PAD,
        "sampler_config": {"_cls_name": "EntropyBoundSamplerConfig", "entropy_bound": 0.1},
        "stability_threshold": 1,
        "t_max": 0.8,
        "t_min": 0.4,
        **changed,
    }


def state(raw: dict[str, Any]) -> dict[str, Tensor]:
    """Random tensors under the published names.

    What layers add to a token's own embedding is halved: with all of it, random weights answer each canvas by
    another one, and no canvas is ever stable.
    """
    with torch.device("meta"):
        named = DiffusionGemmaForBlockDiffusion(DiffusionGemmaConfig.from_dict(raw)).state_dict()
    generator = torch.Generator().manual_seed(0)
    found: dict[str, Tensor] = {}
    for name, meta in named.items():
        noise = torch.randn(meta.shape, generator=generator)
        if name == "lm_head.weight" or (
            name.startswith("model.encoder.language_model.") and "layer_scalar" not in name
        ):
            continue
        if "embed_tokens" in name:
            found[name] = noise
        else:
            near_one = "norm" in name or "scal" in name
            found[name] = noise * 0.1 + 1 if near_one else noise * 0.2
            if "post_attention" in name or "post_feedforward_layernorm.weight" in name:
                found[name] *= 0.5
    return found


def write(folder: Path, **generating: Any) -> Path:
    """A folder with everything that is published."""
    raw = config()
    write_config(folder, raw)
    write_config(folder, generation(**generating), "generation_config.json")
    write_weights(folder, state(raw), shards=3)
    write_byte_tokenizer(folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return folder


def write_byte_tokenizer(folder: Path) -> None:
    """Gemma's: bytes are spelled where there is no token, and a block stands for a blank."""
    ids = {name: number for number, name in enumerate(_VOCABULARY)}
    merges = [(first, second) for first, second in map(str.split, _MERGES)]
    fast = Tokenizer(BPE(ids, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    fast.normalizer = normalizers.Replace(" ", "▁")
    fast.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    fast.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    fast.add_special_tokens([AddedToken(name, normalized=False) for name in (*CONTROLS, "<|image|>")])
    fast.save(str(folder / "tokenizer.json"))
    said = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>", "unk_token": "<unk>"}
    write_config(folder, {"tokenizer_class": "GemmaTokenizer", **said}, "tokenizer_config.json")


WRITERS = {"diffusion-gemma": write}
