"""What a keystroke costs behind contexts of different lengths."""
