"""From raw signals to the probability that a suggestion is accepted."""
