"""Text to token ids and back: the tokenizer, and one file per prompt format."""
