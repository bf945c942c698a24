"""What is open, changed and around in the editor: documents, diff stream, syntax, related code, privacy."""
