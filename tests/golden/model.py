"""A model that says what a script tells it to, as a folder of weights that every door loads like any other.

Its weights are made by hand. Three layers find the last three tokens of the text before every row; the units of the
last one know the threes of the script, and write the token that follows. So all that is real stays real: tokenizer,
prompts, canvases, policies, filters.

A token has a code, and a row holds codes side by side, in fields of `_CODE` numbers.

1. Three heads look 1, 2 and 3 rows back, by the angles of RoPE.
2. The mark of an answer looks at the mark behind the text before the hole, and takes over what the first layer found
   there: the mark stands for the last token of that text.
3. Two heads look 1 and 2 rows back again, now past the mark. Then the script is looked up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

import torch
from torch import Tensor

from calomel.engine import DiffusionConfig, ModelConfig, Transformer
from calomel.engine.checkpoint import save_checkpoint
from calomel.engine.transformer import Attention, Layer, Mlp
from calomel.prompts.tokenizer import Tokenizer
from calomel.weights import nano_path

_CODE: Final = 64
# The fields of a row: its token, those that its heads of the first layer found, what the mark took over, those of the
# last layer, and the answer. Behind them, what kind of mark it is.
_OWN, _BACK, _TAKEN, _STANDS, _LAST, _SAYS, _KINDS = (_CODE * at for at in (0, 1, 4, 7, 10, 12, 13))
_MIDDLE, _REGION, _NEAR = range(_KINDS, _KINDS + 3)
_WIDTH: Final = _KINDS + _CODE
_ROTATED: Final = 32
# How many nats a row that a head looks for is ahead of others; how far a unit is from its threshold.
_SURE: Final = 40.0


def write_model(folder: Path, script: dict[str, str]) -> Path:
    """A model that answers each text of `script` by what stands there for it, and is sure of nothing else."""
    tokenizer = Tokenizer.from_file(nano_path() / "tokenizer.json")
    known = {(kind, before): after for kind, before, after in _known(script, tokenizer)}
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=_WIDTH,
        intermediate_size=max(_CODE + len(known), 3 * _CODE),
        num_hidden_layers=3,
        num_attention_heads=3,
        num_key_value_heads=3,
        head_dim=_CODE,
        rotary_dim=_ROTATED,
        rope_theta=8.0,
        max_position_embeddings=32768,
        tie_word_embeddings=False,
        qk_norm=False,
        attention_bias=True,
        mlp_bias=True,
        diffusion=DiffusionConfig(
            mask_token_id=tokenizer.mask, end_token_id=tokenizer.end, max_canvas=64, logit_shift=True
        ),
    )
    model = Transformer(config)
    noise = torch.Generator().manual_seed(1)
    codes = torch.nn.functional.normalize(torch.randn(tokenizer.vocab_size, _CODE, generator=noise), dim=-1)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.fill_(1.0 if "norm" in name else 0.0)
        _embed(model, codes, tokenizer)
        first, second, third = cast("list[Layer]", list(model.layers))
        for head in range(3):
            _look_back(first.self_attn, head, head + 1)
            _copy(first.self_attn, head, [_OWN], _BACK, norm=2)
        for head in range(3):
            _look_at_marks(second.self_attn, head)
            _copy(second.self_attn, head, [_BACK + head * _CODE], _TAKEN, norm=7.5)
        _take_over(cast("Mlp", second.mlp))
        for head in range(2):
            _look_back(third.self_attn, head, head + 1)
            _copy(third.self_attn, head, [_OWN, _STANDS], _LAST, norm=5)
        _end(cast("Mlp", third.mlp))
        for unit, ((kind, before), after) in enumerate(known.items(), start=_CODE):
            _know(cast("Mlp", third.mlp), unit, kind, codes[list(before)], codes[after])
        # 16 nats between the token and those of unlike codes.
        model.lm_head.weight[:, _SAYS : _SAYS + _CODE] = codes * 16 / math.sqrt(_WIDTH)
    save_checkpoint(model, folder, abilities={"kinds": ["fill", "edit"], "edit_region": _EDITS})
    for name in ("tokenizer.json", "calibrator.json", "recall.json"):
        (folder / name).write_bytes((nano_path() / name).read_bytes())
    return folder


_EDITS = {"above": 1, "below": 2, "characters": 140, "context": 512}
_AT_MARK, _BEHIND_MARK, _LATER = range(3)


def _known(script: dict[str, str], tokenizer: Tokenizer) -> Iterator[tuple[int, tuple[int, ...], int]]:
    """Where a row stands, the last tokens before the next one, and that one."""
    for before, answer in script.items():
        known = len(tokenizer.encode(before))
        apart = [*tokenizer.encode(before), *tokenizer.encode(answer)]
        # The last token before the hole may be one that it cuts.
        for text, first in ((apart, known), (tokenizer.encode(before + answer), max(0, known - 1))):
            for at, following in enumerate([*text, tokenizer.end]):
                if at >= max(first, 3):
                    kind = min(at - first, _LATER)
                    yield kind, tuple(text[at - (2 if kind == _BEHIND_MARK else 3) : at]), following


def _embed(model: Transformer, codes: Tensor, tokenizer: Tokenizer) -> None:
    """Behind a token that nothing is known of, the answer ends; behind a masked one, anything may come."""
    table = model.embed_tokens.weight
    table[:, _OWN : _OWN + _CODE] = codes
    table[:, _SAYS : _SAYS + _CODE] = codes[tokenizer.end]
    table[tokenizer.mask] = 0
    table[tokenizer.middle, _OWN : _OWN + _CODE] = 0
    for kind, token in ((_MIDDLE, tokenizer.middle), (_REGION, tokenizer.region), (_NEAR, tokenizer.near)):
        table[token, kind] = 1


def _rows(attention: Attention, part: int, head: int) -> slice:
    """The rows of the projection for the queries (0), keys (1) or values (2) of a head."""
    start = (part * 3 + head) * _CODE
    return slice(start, start + _CODE)


def _look_back(attention: Attention, head: int, rows: int) -> None:
    """All rows have the same query and the same key: only the angles between them differ, and fit at that distance."""
    half = _ROTATED // 2
    angles = rows * 8.0 ** -(torch.arange(half) / half)
    # The next row fits by some tenth less.
    strength = math.sqrt(_SURE * math.sqrt(_CODE) / half * 10)
    query, key = torch.zeros(_CODE), torch.zeros(_CODE)
    query[:_ROTATED] = torch.cat((angles.cos(), -angles.sin())) * strength
    key[:half] = strength
    attention.qkv_proj.bias[_rows(attention, 0, head)] = query
    attention.qkv_proj.bias[_rows(attention, 1, head)] = key


def _look_at_marks(attention: Attention, head: int) -> None:
    """The mark of an answer looks at the region's mark, or, where there is none, at that of what follows the hole."""
    strength = math.sqrt(_SURE * math.sqrt(_CODE)) / math.sqrt(_WIDTH / 5)
    query, key = (attention.qkv_proj.weight[_rows(attention, part, head)] for part in (0, 1))
    query[-1, _MIDDLE] = strength
    key[-1, _REGION], key[-1, _NEAR] = 2 * strength, strength


def _copy(attention: Attention, head: int, fields: list[int], to: int, norm: float) -> None:
    """What a head finds in `fields`, where the squared norm of a row is `norm`, goes to a field of its own."""
    unit = torch.eye(_CODE)
    for field in fields:
        attention.qkv_proj.weight[_rows(attention, 2, head), field : field + _CODE] = unit * math.sqrt(norm / _WIDTH)
    place = to + head * _CODE
    attention.o_proj.weight[place : place + _CODE, head * _CODE : (head + 1) * _CODE] = unit


def _take_over(mlp: Mlp) -> None:
    """The mark of an answer keeps what its heads found; other rows do not."""
    gate, up = mlp.gate_up_proj.weight.chunk(2)
    size = 3 * _CODE
    scale = math.sqrt(_WIDTH / 8)
    gate[:size, _MIDDLE] = 2 * _SURE / scale
    mlp.gate_up_proj.bias.chunk(2)[0][:size] = -_SURE
    up[:size, _TAKEN : _TAKEN + size] = torch.eye(size) / scale
    mlp.down_proj.weight[_STANDS : _STANDS + size, :size] = torch.eye(size) * 2 / _SURE


def _end(mlp: Mlp) -> None:
    """What a row says by itself is said six times as loud, so that it is as sure as what the units say."""
    mlp.gate_up_proj.bias.chunk(2)[0][:_CODE] = _SURE
    mlp.gate_up_proj.weight.chunk(2)[1][:_CODE, _SAYS : _SAYS + _CODE] = torch.eye(_CODE) / math.sqrt(_WIDTH / 7)
    mlp.down_proj.weight[_SAYS : _SAYS + _CODE, :_CODE] = torch.eye(_CODE) * 5 / _SURE


def _know(mlp: Mlp, unit: int, kind: int, before: Tensor, says: Tensor) -> None:
    """A unit that writes the code `says` where a row has the codes `before`."""
    backwards = list(before.flip(0))
    places = [_STANDS, _STANDS + _CODE, _STANDS + 2 * _CODE] if kind == _AT_MARK else [_OWN, _LAST, _LAST + _CODE]
    scale = 2 * math.sqrt(_WIDTH / 22) if kind == _AT_MARK else math.sqrt(_WIDTH / 7)
    gate, up = mlp.gate_up_proj.bias.chunk(2)
    weight = mlp.gate_up_proj.weight[unit]
    for place, code in zip(places, backwards, strict=False):
        weight[place : place + _CODE] = code / len(backwards) * 8 * _SURE / scale
    gate[unit], up[unit] = -7 * _SURE, 1.0
    mlp.down_proj.weight[_SAYS : _SAYS + _CODE, unit] = says
