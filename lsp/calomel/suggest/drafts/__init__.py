"""Drafts of the next edit that need no model: what the last edits did, done at other places."""
