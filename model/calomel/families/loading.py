"""Maps published tensors to their places in our networks, strictly: none is left over, none is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from calomel.engine import BlockCausal, CheckpointError, Engine, ModelConfig, Transformer
from calomel.engine.checkpoint import native_dtype, tensor_table
from calomel.engine.transformer import inverse_frequency, quantize_tensor
from calomel.families.configuration import read_config
from calomel.families.family import OpenOptions, Quantization
from calomel.families.shards import Shards

TYPES: Final[Mapping[str, torch.dtype]] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def dtype_of(name: str | None, device: str) -> torch.dtype:
    """The type called `name`; None for the one that `device` computes fastest. Raises CheckpointError for others."""
    if name is None:
        return native_dtype(device)
    if name not in TYPES:
        raise CheckpointError(f"dtype is {name!r}; there are {', '.join(TYPES)}")
    return TYPES[name]


_NAMES_SHOWN: Final = 6


Places = Iterable[tuple[str, tuple[str, ...]]]
"""Where published tensors go.

Pairs of the name of a parameter or persistent buffer of the network, and the names of the published tensors that it is
made of, one below the other along dimension 0.
"""


def renamed(places: Places, names: Mapping[str, str]) -> Places:
    """`places` with every part of a published name that is a key of `names` replaced by its value."""
    for ours, theirs in places:
        found = list(theirs)
        for part, other in names.items():
            found = [name.replace(part, other) for name in found]
        yield ours, tuple(found)


def load_into(
    module: nn.Module,
    table: Places,
    shards: Shards,
    *,
    dtype: torch.dtype,
    device: torch.device | str = "cpu",
    ignored: Callable[[str], bool] = lambda _: False,
    keep: Callable[[str], torch.dtype | None] = lambda _: None,
    placed: Callable[[str], None] | None = None,
) -> None:
    """Give `module` (its parameters on the meta device) the tensors of `shards`, one parameter at a time.

    Setting buffers that are not persistent is left to the caller.

    Args:
        module: parameters become plain ones without gradient on `device`; tied ones stay tied.
        table: every parameter and persistent buffer of `module` once; of tied ones, one.
        shards: the published tensors.
        dtype: of floating-point tensors.
        device: where they go.
        ignored: whether a published tensor without a place may stay unread ("…rotary_emb.inv_freq", a tied
            "lm_head.weight").
        keep: the type of the named parameter of ours, if it is not `dtype` (a router's bias in float32).
        placed: called with our name for a tensor once it is loaded, for quantisation during loading.

    Raises:
        CheckpointError: tensors are missing, unknown or of the wrong shape; the message names them.
    """
    places = list(table)
    known = _tensors(module)
    _check_names(places, known, shards, ignored)
    names: dict[int, list[str]] = {}
    for name, tensor in known.items():
        names.setdefault(id(tensor), []).append(name)
    for ours, theirs in places:
        wanted = known[ours]
        kind = keep(ours) or (dtype if wanted.is_floating_point() else wanted.dtype)
        whole = _joined(ours, theirs, wanted.shape, shards, kind, device)
        tensor = nn.Parameter(whole, requires_grad=False) if isinstance(wanted, nn.Parameter) else whole
        for name in names[id(wanted)]:
            parent, _, leaf = name.rpartition(".")
            setattr(module.get_submodule(parent), leaf, tensor)
        if placed is not None:
            placed(ours)


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers under each of their names."""
    kept = module.state_dict(keep_vars=True)
    return {name: tensor for name, tensor in kept.items() if isinstance(tensor, Tensor)}


def _check_names(
    places: Sequence[tuple[str, tuple[str, ...]]],
    known: Mapping[str, Tensor],
    shards: Shards,
    ignored: Callable[[str], bool],
) -> None:
    strange = [ours for ours, _ in places if ours not in known]
    if strange:
        raise CheckpointError(f"this family's table names {_shown(strange)}, which its network lacks")
    filled = {id(known[ours]) for ours, _ in places}
    empty = [name for name, tensor in known.items() if id(tensor) not in filled]
    if empty:
        raise CheckpointError(f"this family's table leaves {_shown(empty)} without a tensor")
    wanted = {name for _, theirs in places for name in theirs}
    missing = sorted(wanted - shards.tensors.keys())
    unknown = sorted(name for name in shards if name not in wanted and not ignored(name))
    told = [f"missing {_shown(missing)}"] * bool(missing) + [f"unknown {_shown(unknown)}"] * bool(unknown)
    if told:
        raise CheckpointError(f"the tensors in {shards.folder} do not fit its config.json: {'; '.join(told)}")


def _joined(
    ours: str, theirs: Sequence[str], shape: torch.Size, shards: Shards, dtype: torch.dtype, device: torch.device | str
) -> Tensor:
    """The published tensors concatenated, each copied once."""
    whole, at = torch.empty(shape, dtype=dtype, device=device), 0
    for name in theirs:
        part = shards.read(name)
        target = whole if len(theirs) == 1 else whole[at : at + part.shape[0]]
        if target.shape != part.shape:
            break
        target.copy_(part)
        at += part.shape[0] if part.dim() else 1
    else:
        if not whole.dim() or at == len(whole):
            return whole
    found = " + ".join(f"{name} {shards.tensors[name].shape}" for name in theirs[:_NAMES_SHOWN])
    raise CheckpointError(f"{found} does not match {ours}, whose shape in config.json is {tuple(shape)}")


def _shown(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


class _WithoutNumbers(TorchFunctionMode):
    """Creates modules without the random initial weights.

    For weights that are replaced, on the meta device: there `normal_` would import torch._dynamo, a second and 80 MB.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Does nothing in place of `torch.nn.init`."""
        if getattr(func, "__module__", None) != "torch.nn.init":
            return func(*args, **(kwargs or {}))
        return None


def load_decoder(
    folder: Path,
    config: ModelConfig,
    places: Places,
    *,
    dtype: torch.dtype,
    device: torch.device | str = "cpu",
    quantize: Quantization | None = None,
) -> Transformer:
    """Our decoder with the tensors in `folder`. Raises CheckpointError if they do not fit.

    With `quantize`, every matrix is rounded as soon as it is loaded: at most one at a time is unquantised.
    """
    with torch.device("meta"), _WithoutNumbers():
        model = Transformer(config)

    load_into(
        model,
        places,
        Shards(folder),
        dtype=dtype,
        device=device,
        # Frequencies follow from the configuration, and a tied head is loaded already.
        ignored=lambda name: name.endswith("rotary_emb.inv_freq") or name == "lm_head.weight",
        # It decides between experts whose scores differ by less than bfloat16 resolves.
        keep=lambda name: torch.float32 if name.endswith("expert_bias") else None,
        placed=None if quantize is None else lambda name: quantize_tensor(model, name),
    )
    model.inverse_frequency = inverse_frequency(config).to(device)
    return model.requires_grad_(requires_grad=False).eval()


def load_checkpoint(
    folder: Path,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    quantize: Quantization | None = None,
) -> Transformer:
    """The decoder of Calomel's own checkpoint in `folder`, in evaluation mode.

    Raises:
        CheckpointError: a file is missing or damaged, or a tensor is missing, unknown, of the wrong shape, or contains
            a NaN or an infinity.
    """
    config = ModelConfig.from_dict(read_config(folder))
    model = load_decoder(folder, config, tensor_table(config), dtype=dtype, device=device, quantize=quantize)
    for name, tensor in model.state_dict().items():
        if tensor.dtype in TYPES.values() and not tensor.isfinite().all():
            raise CheckpointError(f"{name} in {folder} contains infinite or NaN values")
    return model


def open_decoder(
    folder: Path, options: OpenOptions, config: ModelConfig, places: Places, *, end_token_ids: Sequence[int] = ()
) -> Engine:
    """The same as a running engine, with `options`; any of `end_token_ids` ends an answer, too."""
    dtype = dtype_of(options.dtype, options.device)
    model = load_decoder(folder, config, places, dtype=dtype, device=options.device, quantize=options.quantize)
    return engine_of(model, options, end_token_ids=end_token_ids)


def engine_of(model: Transformer, options: OpenOptions, *, end_token_ids: Sequence[int] = ()) -> Engine:
    """An engine on our decoder, with `options`."""
    decoder = BlockCausal(
        model,
        cache_tokens=options.cached,
        end_token_ids=end_token_ids,
        threads=options.threads,
    )
    return Engine(decoder, max_batch=options.batch)
