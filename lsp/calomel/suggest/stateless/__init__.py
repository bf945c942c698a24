"""Next edits for clients that send all that is known with every request, and keep nothing here."""
