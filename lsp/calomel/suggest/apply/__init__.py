"""Merging a snippet with `... existing code ...` markers into the file that it was written for."""
