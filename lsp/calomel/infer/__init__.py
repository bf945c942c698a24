"""Asking a model: in this process, over HTTP, or behind another server; and reading what it writes."""
