"""A replay as one HTML page that needs nothing else: plots, figures, and every suggestion."""
