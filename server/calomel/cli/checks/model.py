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
_MEMINFO: Final = Path("/proc/meminfo")
# PyTorch and the libraries, before any weight is read.
_PROGRAM_BYTES: Final = 400 * MIB
# Weights are read, then converted where the processor has no bfloat16.
_COPIES: Final = 3


def check_model(settings: ServerSettings) -> Iterator[Finding]:
    """Everything that answering needs."""
    from calomel.weights import nano_path

    try:
        folder = folder_of(settings.model) or nano_path()
    except ModelNameError as error:
        yield fail("model", str(error), "calomel models list says which there are")
        return
    yield _folder(folder)
    yield from _memory(folder)
    yield _device(settings.device)
    yield _grammars()


def _folder(folder: Path) -> Finding:
    from calomel.suggest.model_info import describe

    if not is_model(folder):
        return fail("model", f"{folder} has no config.json with .safetensors beside it", "choose another --model")
    if not (folder / "tokenizer.json").is_file():
        return fail("model", f"{folder} has no tokenizer.json", "choose another --model")
    try:
        info = describe(folder)
    except (OSError, ValueError) as error:
        return fail("model", f"{folder}: {error}", "choose another --model")
    return ok("model", f"{folder} ({', '.join(info.kinds)}; {info.max_context} positions)")


def _memory(folder: Path) -> Iterator[Finding]:
    needed = _PROGRAM_BYTES + _COPIES * sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    free = available_bytes()
    if free is None:
        return
    told = f"{free // MIB} MiB free, about {needed // MIB} MiB needed"
    if free < needed:
        yield fail("memory", told, "close something, or choose a smaller model")
    else:
        yield ok("memory", told)


def available_bytes(meminfo: Path = _MEMINFO) -> int | None:
    """Memory that a new program may take without swapping; None where the system does not tell."""
    try:
        for line in meminfo.read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None


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
