"""A model whose weights are served elsewhere, behind the face of an engine.

Prompts, filters, conversations and the log of outcomes stay here; forwards are made by a server that speaks the
completions API of OpenAI (vLLM and others). `target` imports nothing; everything else needs `calomel.engine`, and with
that torch.
"""
