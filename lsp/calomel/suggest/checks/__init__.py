"""What a suggestion must pass before its confidence is looked at: each check a pure function in a file of its own."""
