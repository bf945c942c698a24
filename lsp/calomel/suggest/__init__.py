"""A suggestion's life: from the question, through the model, to what became of it."""
