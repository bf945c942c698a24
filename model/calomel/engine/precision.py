"""Which floating-point type a device computes in natively."""

from __future__ import annotations

from functools import cache

import torch


@cache
def native_bfloat16() -> bool:
    """True when the CPU multiplies bfloat16 in hardware; where it does not, bfloat16 is several times slower."""
    capabilities = torch.cpu.get_capabilities()
    return any(bool(capabilities.get(name)) for name in ("avx512_bf16", "amx_bf16", "bf16"))
