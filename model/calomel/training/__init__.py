"""Training: corpus, examples, the two losses, the loop."""
