"""The same weights left to right in other people's engines, timed beside ours."""
