"""The published kinds of diffusion language model: how a checkpoint is recognised, read, prompted and run.

A family knows its checkpoints' token names, files and figures; it knows nothing of prompt texts, editors or servers.
"""
