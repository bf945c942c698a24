"""One family of figures a file; all are pure functions of texts, or of what a replay wrote down."""
