"""Reads source code: languages, trees, definitions, names, and text that no grammar understands yet."""
