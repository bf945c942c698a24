"""The special tokens of Calomel's own format.

They are ordinary vocabulary entries that no merge can produce, never "added tokens": the text `<|end|>` in a user's
file is encoded as the characters it consists of, so that no file can forge a control token.
"""

from __future__ import annotations

from typing import Final

END: Final = "<|end|>"
MASK: Final = "<|mask|>"
PAD: Final = "<|pad|>"
FILE: Final = "<|file|>"
SUFFIX: Final = "<|suffix|>"
PREFIX: Final = "<|prefix|>"
NEAR: Final = "<|near|>"
MIDDLE: Final = "<|middle|>"

NAMED: Final = (END, MASK, PAD, FILE, SUFFIX, PREFIX, NEAR, MIDDLE)
# Room for the formats to come: ids that exist from the start need no surgery on the weights.
RESERVED: Final = tuple(f"<|reserved_{number}|>" for number in range(32 - len(NAMED)))
ALL: Final = NAMED + RESERVED
# What stands in a file to be rewritten, and where the cursor is in it.
REGION: Final = RESERVED[0]
CURSOR: Final = RESERVED[1]
