"""How likely a draft for a hole is right, by what the model makes of it.

What once stood behind the same words mostly stands behind them again, however unlikely a small model finds every long
text. So its likelihood is evidence beside that prior, no probability: the numbers were fitted by logistic regression on
130 drafts for 500 rests of lines in held-out files, of which 54 % were right. The fit ranks right above wrong drafts in
77 % of pairs, and is right about as often as it says (0.3 to 0.5: 30 %; 0.5 to 0.7: 63 %; 0.7 to 0.9: 77 %).
"""

from __future__ import annotations

import math
from typing import Final

_WEIGHT: Final = 0.072
_PRIOR: Final = 1.65


def belief(log_prob: float) -> float:
    """The probability that a draft is right, from its exact joint log-probability in nats."""
    return 1.0 / (1.0 + math.exp(-max(-700.0, _WEIGHT * log_prob + _PRIOR)))
