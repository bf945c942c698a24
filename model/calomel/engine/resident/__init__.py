"""Denoising steps that stay on the device: fixed shapes, state in tensors, and a host that looks now and then.

1. `arena`: the keys and values of running requests, spans of one tensor.
2. `shape`, `state`: what a step is recorded for, and what is data in it.
3. `attention`, `flash`: how its rows find their keys.
4. `step`: one step, from the board to the board.
5. `graphs`: steps recorded as CUDA graphs.
6. `runner`: whose canvases are taken on, and what became of them.
"""

from calomel.engine.resident.options import ResidentOptions

__all__ = ["ResidentOptions"]
