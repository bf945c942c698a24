"""The published kinds of diffusion language model: how a checkpoint is recognised, read, asked and run.

A family knows token ids' names, files and figures of its checkpoints; it knows no prompt's text, no editor and no door.
"""
