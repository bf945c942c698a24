"""Conversations: from messages to the ids that a chat model reads, and from its text to content and calls."""
