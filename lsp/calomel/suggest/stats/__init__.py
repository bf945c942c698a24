"""What the outcome log says about a person and the suggestions."""
