"""Names that clients give a file: bare here, with its folders there, under its worktree's name or its drive."""

from __future__ import annotations


def same_file(one: str, other: str) -> bool:
    """Whether two names may be of one file: one of them is the end of the other."""
    one, other = one.replace("\\", "/"), other.replace("\\", "/")
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")
