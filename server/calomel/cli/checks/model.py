"""The model's side: folder, device, memory, grammars."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from calomel.cli.checks.finding import Finding, fail, ok, warn
from calomel.server.model_folders import ModelNameError, folder_of, is_model
from calomel.server.settings import ServerSettings

MIB: Final = 1024 * 1024


def check_model(settings: ServerSettings) -> Iterator[Finding]:
    """Everything that answering needs."""
    from calomel.weights import nano_path

    try:
        folder = folder_of(settings.model) or nano_path()
    except ModelNameError as error:
        yield fail("model", str(error), "calomel models list says which there are")
        return
    yield _folder(folder, weights=settings.upstream is None)
    if settings.upstream_host is not None:
        # `calomel serve` asks it for a few tokens; the doctor sends nothing to another machine.
        yield ok("upstream", f"prompts go to {settings.upstream_host}, which serves the model's weights")
        yield _grammars()
        return
    yield from _memory(folder, settings)
    yield _device(settings.device)
    yield _grammars()


def _folder(folder: Path, *, weights: bool) -> Finding:
    from calomel.suggest.model_info import describe

    if not weights and not (folder / "config.json").is_file():
        return fail("model", f"{folder} has no config.json", "choose another --model")
    if weights and not is_model(folder):
        return fail("model", f"{folder} has no config.json with .safetensors beside it", "choose another --model")
    try:
        info = describe(folder)
        if info.tokenizer is None:
            _read_published(folder, weights=weights)
        elif not Path(info.tokenizer).is_file():
            return fail("model", f"{folder} has no tokenizer.json", "choose another --model")
    except (OSError, ValueError) as error:
        return fail("model", f"{folder}: {error}", "choose another --model")
    return ok("model", f"{folder} ({', '.join(info.kinds)}; {info.max_context} positions)")


def _read_published(folder: Path, *, weights: bool) -> None:
    """Read all of another maker's checkpoint but the weights themselves; `weights`: they are there, too.

    Raises ValueError.
    """
    from calomel.engine import CheckpointError
    from calomel.families.configuration import read_config
    from calomel.families.shards import Shards
    from calomel.families.table import find
    from calomel.prompts.published import open_published

    try:
        family = find(folder)
        diffusion = family.config(read_config(folder), folder).diffusion
        if weights:
            Shards(folder)
    except CheckpointError as error:
        raise ValueError(str(error)) from error
    open_published(folder, family.prompts, end=diffusion.end_token_id, mask=diffusion.mask_token_id)


def _memory(folder: Path, settings: ServerSettings) -> Iterator[Finding]:
    """Whether the device has what the server would take there, counted as the server counts before it loads."""
    import torch

    from calomel.engine import CheckpointError
    from calomel.families.family import OpenOptions
    from calomel.families.memory import PROCESS_BYTES, free_bytes
    from calomel.families.open import OutOfMemoryRefusedError, estimate_of, fitted
    from calomel.families.table import find

    on_gpu = settings.device.startswith("cuda")
    free = free_bytes(settings.device) if not on_gpu or torch.cuda.is_available() else None
    if free is None:
        return
    process = 0 if on_gpu else PROCESS_BYTES
    options = OpenOptions(
        device=settings.device,
        cache_tokens=settings.cache_tokens,
        quantize=settings.quantize,
        memory_limit=max(0, free - process),
    )
    try:
        family = find(folder)
        try:
            chosen, report = fitted(folder, family, options), None
        except OutOfMemoryRefusedError:
            chosen, report = options, "close something, or choose a smaller model"
        needed = process + estimate_of(folder, family, chosen).total
    except CheckpointError:
        return  # the model's own line says what is wrong
    told = f"{free // MIB} MiB free, up to {needed // MIB} MiB needed, with {chosen.cached} tokens cached"
    yield ok("memory", told) if report is None else fail("memory", told, report)


def _device(device: str) -> Finding:
    import torch

    if not device.startswith("cuda"):
        return ok("device", f"{device}, {len(os.sched_getaffinity(0))} processors, PyTorch {torch.__version__}")
    if not torch.cuda.is_available():
        return fail(
            "device", f"{device}: PyTorch {torch.__version__} sees no GPU", "use --device cpu, or mend the driver"
        )
    index = torch.device(device).index or 0
    if index >= torch.cuda.device_count():
        return fail("device", f"{device}: there are {torch.cuda.device_count()} GPUs", "choose another --device")
    free, total = torch.cuda.mem_get_info(index)
    return ok("device", f"{torch.cuda.get_device_name(index)}, {free // MIB} of {total // MIB} MiB free")


def _grammars() -> Finding:
    from calomel.workspace.languages import GRAMMARS, load

    missing = sorted({grammar.module for grammar in GRAMMARS if load(grammar) is None})
    if missing:
        return warn("grammars", f"cannot be loaded: {', '.join(missing)}", "pip install the packages of these names")
    return ok("grammars", f"{len(GRAMMARS)} languages")
