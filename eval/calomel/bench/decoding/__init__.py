"""The same weights decoded in other ways: what changes exact matches without any training."""
