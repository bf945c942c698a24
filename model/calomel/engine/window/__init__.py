"""Window mode: models that read a whole sequence in both directions, prefix, canvas and suffix alike.

Nothing of a context can be kept for the next request: every token sees every other one. So a window is a few thousand
tokens, and each step is a forward of all of it, or of a block of the canvas over keys and values that the block's first
forward left (`WindowOptions.dual_cache`, approximate).
"""

from __future__ import annotations

from calomel.engine.window.engine import WindowEngine
from calomel.engine.window.options import WindowOptions

__all__ = ["WindowEngine", "WindowOptions"]
