"""Merging a snippet with `... existing code ...` markers into its file."""
