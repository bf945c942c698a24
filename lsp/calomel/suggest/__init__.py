"""A suggestion's life; for now, filling one hole."""
