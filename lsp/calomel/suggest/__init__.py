"""The life of a suggestion: from the question, through the model, to its outcome."""
