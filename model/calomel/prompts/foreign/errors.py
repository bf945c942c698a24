"""The one thing that may be wrong with a foreign prompt: what it must have is not there."""

from __future__ import annotations


class ForeignPromptError(ValueError):
    """A prompt that cannot be read. The message says what is missing and quotes nothing of the prompt."""
