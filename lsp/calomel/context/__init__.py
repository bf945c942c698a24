"""What goes into a prompt, within a token budget, and in which order."""
