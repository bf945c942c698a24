"""Canvases of uniform noise: every position is drawn anew in each step, and what is sure of it is kept for the next.

DiffusionGemma denoises so: there is no mask token. A canvas begins as random tokens; the model reads it together with
its own last prediction (self-conditioning), positions of low entropy are accepted, the others get fresh noise, and the
best tokens of the last step are the answer. The network is a `Backbone`; this package knows none.
"""

from calomel.engine.renoise.backbone import Backbone, Encoded
from calomel.engine.renoise.rules import RenoiseRules, RenoiseShape
from calomel.engine.renoise.worker import RenoiseWorker

__all__ = ["Backbone", "Encoded", "RenoiseRules", "RenoiseShape", "RenoiseWorker"]
