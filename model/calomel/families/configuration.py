"""Published `config.json` files of decoders that are ours under other names: Qwen2, Qwen3 and Llama."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from calomel import storage
from calomel.engine import CheckpointError, DiffusionConfig, ModelConfig
from calomel.engine.config import RopeScaling
from calomel.weights.folders import why_none

_TOKENIZER_FILES: Final = ("tokenizer.json", "vocab.json", "added_tokens.json", "tokenizer_config.json")
# Qwen2's and Qwen3's own default of `max_window_layers`.
_WHOLE_LAYERS: Final = 28


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object at `path`; empty if there is no such file. Raises CheckpointError for a damaged one."""
    return storage.read_object(path, CheckpointError)


def read_config(folder: Path) -> dict[str, Any]:
    """The `config.json` of `folder`; raises CheckpointError if it is missing or not a JSON object."""
    path = folder / "config.json"
    if not path.exists():
        raise CheckpointError(why_none(folder))
    return read_object(path)


def decoder_config(
    raw: Mapping[str, Any],
    diffusion: DiffusionConfig,
    *,
    qk_norm: bool = False,
    qkv_bias: bool | None = None,
    windows: bool = False,
    **own: Any,
) -> ModelConfig:
    """Read a `config.json` with the field names of Qwen2, Qwen3 or Llama.

    Args:
        raw: the `config.json`.
        diffusion: how the checkpoint denoises.
        qk_norm: whether queries and keys are normalised per head (Qwen3).
        qkv_bias: whether queries, keys and values have a bias and the output has none (Qwen2); None if `attention_bias`
            decides for all four.
        windows: whether layers may have sliding windows, in the fields of Qwen2 and Qwen3.
        own: fields of ours that have other names in `config.json`.

    Raises:
        CheckpointError: a field is missing or of the wrong type, or asks for what our decoder does not do.
    """
    _refuse(raw, windows=windows)
    everywhere = bool(raw.get("attention_bias")) if qkv_bias is None else False
    scaling = _scaling(raw)
    fields = {
        **{name: value for name, value in raw.items() if value is not None},
        "diffusion": asdict(diffusion),
        "rope_theta": rope_of(raw).get("rope_theta") or 10_000.0,
        "rope_scaling": None if scaling is None else asdict(scaling),
        "tie_word_embeddings": bool(raw.get("tie_word_embeddings")),
        "qk_norm": qk_norm,
        "attention_bias": everywhere if qkv_bias is None else qkv_bias,
        "output_bias": everywhere,
        "mlp_bias": bool(raw.get("mlp_bias")),
        **(_windows(raw) if windows else _NO_WINDOWS),
        "rotary_dim": None,
        "moe": None,
        **own,
    }
    return ModelConfig.from_dict(fields)


def block_of(raw: Mapping[str, Any], name: str, published: int) -> int:
    """The block length that `config.json` gives under `name`; without it, the published one.

    Raises:
        CheckpointError: it is not a whole number above 1.
    """
    said = raw.get(name)
    if said is None:
        return published
    if not isinstance(said, int) or isinstance(said, bool) or said < 2:  # noqa: PLR2004  (1 would be no block)
        raise CheckpointError(f"{name} in config.json is {json.dumps(said)}; it must be a whole number above 1")
    return said


def names_of(raw: Mapping[str, Any], folder: Path) -> str:
    """All names of a checkpoint, in lower case.

    `_name_or_path` of its configuration, its folder, the repository that it was fetched from, and the folder of the
    hub's own cache (`models--owner--name/snapshots/<commit>`).
    """
    place = folder.resolve()
    fetched = read_object(folder / "calomel-source.json").get("repository", "")
    cached = place.parents[1].name if place.parent.name == "snapshots" else ""
    return f"{raw.get('_name_or_path', '')} {place.name} {fetched} {cached}".lower()


def named(raw: Mapping[str, Any], *parts: str) -> bool:
    """Whether model type, an architecture or a remote class in `config.json` contains one of `parts`, in any case."""
    architectures, remote = raw.get("architectures"), raw.get("auto_map")
    said = [raw.get("model_type")]
    said += architectures if isinstance(architectures, list) else []
    said += remote.values() if isinstance(remote, Mapping) else ()
    names = [str(name).lower() for name in said if name]
    return any(part.lower() in name for part in parts for name in names)


def rope_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The RoPE settings in `config.json`, wherever they are.

    Raises:
        CheckpointError: there are some for each kind of layer, or they are not an object.
    """
    found: dict[str, Any] = {}
    for place in ("rope_parameters", "rope_scaling"):
        said = raw.get(place) or {}
        if not isinstance(said, Mapping) or any(isinstance(value, Mapping) for value in said.values()):
            raise CheckpointError(
                f"{place} in config.json is {json.dumps(said)}; only one object of numbers for all layers is supported"
            )
        found |= said
    own = {name: raw[name] for name in ("rope_theta", "partial_rotary_factor") if raw.get(name) is not None}
    return found | own


def _scaling(raw: Mapping[str, Any]) -> RopeScaling | None:
    rope = rope_of(raw)
    kind = rope.get("rope_type") or rope.get("type") or "default"
    match kind:
        case "default":
            return None
        case "linear":
            return RopeScaling(float(rope["factor"]))
        case "llama3":
            positions = int(rope["original_max_position_embeddings"])
            low, high = float(rope["low_freq_factor"]), float(rope["high_freq_factor"])
            return RopeScaling(float(rope["factor"]), positions, low, high)
        case _:
            raise CheckpointError(
                f"rope_scaling in config.json is {json.dumps(kind)}; default, linear and llama3 are supported"
            )


_NO_WINDOWS: Final[Mapping[str, Any]] = {"sliding_window": None, "layer_types": ()}


def _windows(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Sliding windows, if any, of the layers that `layer_types` names; else of those from `max_window_layers` on."""
    kinds, window = raw.get("layer_types"), raw.get("sliding_window")
    if not raw.get("use_sliding_window") or window is None:
        return _NO_WINDOWS
    if not kinds:
        whole, layers = raw.get("max_window_layers"), int(raw["num_hidden_layers"])
        first = min(_WHOLE_LAYERS if whole is None else int(whole), layers)
        kinds = ["full_attention"] * first + ["sliding_attention"] * (layers - first)
    return {"sliding_window": window, "layer_types": tuple(kinds)}


def _refuse(raw: Mapping[str, Any], *, windows: bool) -> None:
    if raw.get("quantization_config"):
        raise CheckpointError(
            "config.json has quantization_config: Calomel does not read weights quantised by another program; use the "
            "original checkpoint (--quantize int8 rounds it while loading)"
        )
    if raw.get("hidden_act", "silu") not in ("silu", "swish"):
        raise CheckpointError(f"hidden_act in config.json is {json.dumps(raw['hidden_act'])}; only silu is supported")
    kinds = raw.get("layer_types") or ()
    if any(each != "full_attention" for each in kinds) and not windows:
        raise CheckpointError(f"layer_types in config.json is {json.dumps(kinds)}; only full_attention is supported")
    if raw.get("use_sliding_window") and not windows:
        raise CheckpointError("use_sliding_window in config.json is not supported")


def token_ids(folder: Path) -> Mapping[str, int]:
    """The ids of all possible control tokens: added tokens, and those of the vocabulary with a `<` in their name.

    Cached while the files stay as they are: those of large vocabularies take half a second.

    Raises:
        CheckpointError: a tokenizer file is damaged.
    """
    paths = [folder / name for name in _TOKENIZER_FILES]
    return _token_ids(folder, tuple(path.stat().st_mtime_ns if path.is_file() else 0 for path in paths))


@lru_cache(maxsize=16)
def _token_ids(folder: Path, _changed: tuple[int, ...]) -> Mapping[str, int]:
    fast, slow, added, said = (read_object(folder / name) for name in _TOKENIZER_FILES)
    model = fast.get("model")
    vocabulary = model.get("vocab") if isinstance(model, Mapping) else slow
    found: dict[str, int] = {}
    if isinstance(vocabulary, Mapping):
        found |= {name: int(number) for name, number in vocabulary.items() if "<" in name}
    found |= {token["content"]: int(token["id"]) for token in fast.get("added_tokens") or ()}
    found |= {name: number for name, number in added.items() if isinstance(number, int)}
    return found | {token["content"]: int(number) for number, token in (said.get("added_tokens_decoder") or {}).items()}


def token_id(folder: Path, *names: str) -> int | None:
    """The id of the first of `names` that the checkpoint has, else None; see `token_ids`."""
    known = token_ids(folder)
    return next((known[name] for name in names if name in known), None)


def need_token_id(folder: Path, *names: str) -> int:
    """The same; raises CheckpointError if the checkpoint has none of `names`."""
    found = token_id(folder, *names)
    if found is None:
        raise CheckpointError(f"the tokenizer in {folder} has no token {' or '.join(names)}")
    return found


def control_id(raw: Mapping[str, Any], folder: Path, field: str, names: Sequence[str], published: int | None) -> int:
    """The id from `config.json`, else from the tokenizer, else the published one. Raises CheckpointError."""
    said = raw.get(field)
    found = said if isinstance(said, int) else token_id(folder, *names)
    if found is None:
        found = need_token_id(folder, *names) if published is None else published
    if not 0 <= found < int(raw.get("vocab_size", 0)):
        raise CheckpointError(f"{folder} has no token {names[0]}: {found} is outside of its vocabulary")
    return found
