"""Whether a device that the user named is one that this machine can compute on."""

from __future__ import annotations

from calomel.cli.errors import InputError


def check_device(name: str) -> None:
    """Raises InputError when torch cannot use the device `name`; the message gives torch's reason. Imports torch."""
    if name == "cpu":
        return
    import torch

    try:
        torch.empty(0, device=name)
    except (AssertionError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"--device {name} cannot be used here: {reason}. Without the option Calomel runs on the CPU"
        ) from error
