"""Training: corpus, examples, the two losses, the loop."""

import calomel.engine  # noqa: F401  (decides how OpenMP waits, which must come before torch is imported)
