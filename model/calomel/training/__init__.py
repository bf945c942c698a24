"""Training: corpus, examples, the two losses, the loop."""

import calomel.engine  # noqa: F401  (sets how OpenMP waits, before torch is imported)
