"""Edits to learn from: code before, and the changes that a person would make to it, in order."""
