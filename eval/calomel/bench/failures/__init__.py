"""What a model gets wrong, by kind: the list that says what to train, or to decode, otherwise."""
