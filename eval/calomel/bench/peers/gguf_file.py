"""A checkpoint as llama.cpp reads it: GGUF in the Qwen3 layout, without a vocabulary, since token ids are passed.

llama.cpp knows no sliding windows in this layout, so that what is written is the twin of the checkpoint in which every
layer sees everything. Within the window both are the same model.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from calomel.bench.peers.peer import PeerUnavailableError

if TYPE_CHECKING:
    from torch import Tensor

    from calomel.engine import ModelConfig, Transformer

NumberType = Literal["f32", "f16", "bf16", "q8_0"]
ARCHITECTURE: Final = "qwen3"
_Q8_BLOCK: Final = 32


def write_gguf(model: Transformer, path: Path, number_type: NumberType) -> None:
    """Write `model` to `path`, matrices as `number_type`, norms as 32-bit floats.

    `q8_0` is llama.cpp's own kind of eight bits, with a scale for 32 numbers of a row; rows of other
    lengths are written as `f16`.

    Raises:
        PeerUnavailableError: the package gguf is not installed, or the checkpoint is of no Qwen3 shape.
    """
    config = model.config
    if not config.qk_norm or config.attention_bias:
        raise PeerUnavailableError("llama.cpp's Qwen3 layout has norms on queries and keys and no biases")
    try:
        gguf: Any = import_module("gguf")
    except ImportError as error:
        raise PeerUnavailableError("gguf is not installed: pip install -e '.[peers]'") from error
    writer = gguf.GGUFWriter(path, ARCHITECTURE)
    _describe(writer, config)
    kind = gguf.GGMLQuantizationType[number_type.upper()]
    narrow = gguf.GGMLQuantizationType.F16 if number_type == "q8_0" else kind
    for name, tensor in _tensors(model):
        values = tensor.detach().float().cpu().contiguous().numpy()
        if values.ndim == 1:
            writer.add_tensor(name, values)
        else:
            own = narrow if values.shape[-1] % _Q8_BLOCK else kind
            writer.add_tensor(name, gguf.quants.quantize(values, own), raw_dtype=own)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _describe(writer: Any, config: ModelConfig) -> None:
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("no_vocab")


def _tensors(model: Transformer) -> list[tuple[str, Tensor]]:
    """The tensors in llama.cpp's names, fused projections split."""
    config, state = model.config, model.state_dict()
    keys = config.num_key_value_heads * config.head_dim
    found = [("token_embd.weight", state["embed_tokens.weight"]), ("output_norm.weight", state["norm.weight"])]
    if not config.tie_word_embeddings:
        found.append(("output.weight", state["lm_head.weight"]))
    for layer in range(config.num_hidden_layers):
        ours, theirs = f"layers.{layer}", f"blk.{layer}"
        fused = state[f"{ours}.self_attn.qkv_proj.weight"]
        q, k, v = fused.split((fused.shape[0] - 2 * keys, keys, keys))
        gate, up = state[f"{ours}.mlp.gate_up_proj.weight"].chunk(2)
        found += [
            (f"{theirs}.attn_norm.weight", state[f"{ours}.input_layernorm.weight"]),
            (f"{theirs}.attn_q.weight", q),
            (f"{theirs}.attn_k.weight", k),
            (f"{theirs}.attn_v.weight", v),
            (f"{theirs}.attn_q_norm.weight", state[f"{ours}.self_attn.q_norm.weight"]),
            (f"{theirs}.attn_k_norm.weight", state[f"{ours}.self_attn.k_norm.weight"]),
            (f"{theirs}.attn_output.weight", state[f"{ours}.self_attn.o_proj.weight"]),
            (f"{theirs}.ffn_norm.weight", state[f"{ours}.post_attention_layernorm.weight"]),
            (f"{theirs}.ffn_gate.weight", gate),
            (f"{theirs}.ffn_up.weight", up),
            (f"{theirs}.ffn_down.weight", state[f"{ours}.mlp.down_proj.weight"]),
        ]
    return found
