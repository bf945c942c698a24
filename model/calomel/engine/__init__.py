"""The inference engine: token ids in; token ids, and how sure the model was of each, out.

It knows nothing of text, files, HTTP or editors. Contexts are encoded causally into an exact prefix cache; answers are
denoised on a canvas that attends to it in both directions.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

# Set before torch is imported: by default OpenMP's threads spin at the end of every parallel region, so that another
# process on the same cores (a compiler, a test run) makes each denoising step many times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "0")
os.environ.setdefault("KMP_BLOCKTIME", "0")
# On a CPU oneDNN caches a primitive per bfloat16 matrix product and number of rows, 0.3 MB in two places: the
# default of 1,024 grew to 650 MB in a long-lived server. Creating one takes a millisecond.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
os.environ.setdefault("LRU_CACHE_CAPACITY", "128")

from calomel.engine.errors import CheckpointError, DeadlineExceededError, EngineError, EngineStoppedError
from calomel.engine.request import CanvasState, Constraint, Priority, Request, Result, SamplingParams

if TYPE_CHECKING:
    from calomel.engine.bidirectional import Bidirectional, BidirectionalOptions
    from calomel.engine.block_causal import BlockCausal
    from calomel.engine.config import DiffusionConfig, ModelConfig
    from calomel.engine.decoder import Work
    from calomel.engine.engine import Engine
    from calomel.engine.handle import Handle
    from calomel.engine.transformer import Transformer

__all__ = [
    "Bidirectional",
    "BidirectionalOptions",
    "BlockCausal",
    "CanvasState",
    "CheckpointError",
    "Constraint",
    "DeadlineExceededError",
    "DiffusionConfig",
    "Engine",
    "EngineError",
    "EngineStoppedError",
    "Handle",
    "ModelConfig",
    "Priority",
    "Request",
    "Result",
    "SamplingParams",
    "Transformer",
    "Work",
]

# What imports torch is imported at its first use: requests and errors are also for processes that have no engine.
_MODULES: Final = {
    "Bidirectional": "bidirectional",
    "BidirectionalOptions": "bidirectional",
    "BlockCausal": "block_causal",
    "DiffusionConfig": "config",
    "Engine": "engine",
    "Handle": "handle",
    "ModelConfig": "config",
    "Transformer": "transformer",
    "Work": "decoder",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
