"""The training corpus: pinned open-source packages turned into clean, licensed text."""
