"""The language server: protocol in, protocol out, nothing else."""
