"""Whether PyTorch can use a device, and what to do if not: another build of it, another driver, another device."""

from __future__ import annotations

import re
import subprocess
import warnings
from typing import Any, Final, NamedTuple

from calomel.infer.extras import installing
from calomel.storage.machine import nvidia_smi

# What PyTorch calls the builds of CUDA for which it has wheels, by the lowest CUDA that the driver must support. They
# are there for all versions that Calomel runs with (https://github.com/pytorch/pytorch/issues/190355).
_BUILDS: Final = (((13, 0), "cu130"), ((12, 0), "cu126"))
_INDEX: Final = "https://download.pytorch.org/whl/"
_DEVICE: Final = re.compile(r"(cpu|mps|cuda)(?::(\d{1,3}))?")
# The second name is that of drivers from 590 on.
_SUPPORTED: Final = re.compile(r"CUDA (?:UMD )?Version: *(\d+)\.(\d+)")
_PATIENCE: Final = 10.0
_MIB: Final = 1024 * 1024


class DeviceProblem(NamedTuple):
    """Why a device cannot be used, and what to do."""

    found: str
    advice: str


def problem_of(device: str) -> DeviceProblem | None:
    """Why PyTorch cannot use a device; None if it can. Imports torch, and may start the GPU."""
    with warnings.catch_warnings():
        # PyTorch warns of an old driver, and of a GPU that a build does not know; both are found here.
        warnings.simplefilter("ignore")
        return _problem_of(device)


def _problem_of(device: str) -> DeviceProblem | None:
    import torch

    named = _DEVICE.fullmatch(device)
    if named is None:
        return DeviceProblem(f"{device} is not a device", "use cpu, cuda, cuda:N or mps")
    kind, index = named[1], int(named[2] or 0)
    if kind == "mps" and not torch.backends.mps.is_available():
        other = "cuda, for the NVIDIA GPU" if _driver() else "cpu"
        return DeviceProblem(f"PyTorch {torch.__version__} sees no Apple GPU", f"use {other}")
    if kind == "cuda":
        problem = _without_cuda(torch) or _beyond(torch, index)
        if problem is not None:
            return problem
    try:
        torch.zeros(1, device=device).add_(1).cpu()
    except Exception as error:  # noqa: BLE001 (whatever a driver makes of it)
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        return DeviceProblem(f"PyTorch {torch.__version__} fails there: {reason}", _other_build(torch) or "use cpu")
    return None


def described(device: str) -> str:
    """A device that works, in words: its name and memory."""
    import torch

    if not device.startswith("cuda"):
        return f"{device}: PyTorch {torch.__version__} sees an Apple GPU"
    free, total = torch.cuda.mem_get_info(torch.device(device))
    return f"{torch.cuda.get_device_name(torch.device(device))}, {free // _MIB} of {total // _MIB} MiB free"


def _without_cuda(torch: Any) -> DeviceProblem | None:
    """Why PyTorch sees no NVIDIA GPU at all."""
    if torch.version.cuda is None and torch.version.hip is None:
        found, command = f"PyTorch {torch.__version__} was built without CUDA", _install(torch, _build())
        if _driver() is None:
            found += ", and `nvidia-smi` shows no GPU"
            command = f"use cpu; with an NVIDIA GPU, install its driver, then: {command}"
        return DeviceProblem(found, command)
    if torch.cuda.device_count():
        return None
    found = f"PyTorch {torch.__version__} sees no GPU"
    if torch.version.cuda is None:
        return DeviceProblem(found, "repair the driver, or use cpu")
    driver = _driver()
    if driver is None:
        return DeviceProblem(
            f"{found}: the NVIDIA driver is missing or does not work (`nvidia-smi` shows no GPU)",
            "install or repair the driver until `nvidia-smi` shows the GPU, or use cpu",
        )
    if driver < _version(torch.version.cuda)[:1]:
        supported = ".".join(map(str, driver))
        advice = _other_build(torch) or "install a newer NVIDIA driver, or use cpu"
        return DeviceProblem(f"{found}: the NVIDIA driver supports CUDA {supported}, not {torch.version.cuda}", advice)
    return DeviceProblem(found, "see whether CUDA_VISIBLE_DEVICES hides it, restart the machine, or use cpu")


def _beyond(torch: Any, index: int) -> DeviceProblem | None:
    count = torch.cuda.device_count()
    if index < count:
        return None
    there = "cuda:0" if count == 1 else f"cuda:0 to cuda:{count - 1}"
    return DeviceProblem(f"PyTorch {torch.__version__} sees {count} GPU{'s' if count > 1 else ''}", f"use {there}")


def _other_build(torch: Any) -> str:
    """How to install the build that suits the driver; empty if it is this one, or if there is none."""
    build = _build()
    return "" if torch.version.cuda is None or torch.__version__.endswith(f"+{build}") else _install(torch, build)


def _build() -> str | None:
    """The build of PyTorch that the driver can run: the newest one without a driver that says; None for none."""
    driver = _driver()
    if driver is None:
        return _BUILDS[0][1]
    return next((name for least, name in _BUILDS if driver >= least), None)


def _install(torch: Any, build: str | None) -> str:
    if build is None:
        return "install a newer NVIDIA driver, or use cpu"
    version = torch.__version__.partition("+")[0]
    return installing(f"torch=={version}+{build} --index-url {_INDEX}{build}")


def _driver() -> tuple[int, ...] | None:
    """The newest CUDA that the NVIDIA driver supports; None if there is no driver that works."""
    program = nvidia_smi()
    if program is None:
        return None
    try:
        done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=_PATIENCE)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    said = _SUPPORTED.search(done.stdout)
    return None if done.returncode or said is None else (int(said[1]), int(said[2]))


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
