"""Tokenizers of checkpoints that other makers publish."""
