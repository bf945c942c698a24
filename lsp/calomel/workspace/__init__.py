"""The editor's open documents and their surroundings: diff stream, syntax, related code, privacy."""
