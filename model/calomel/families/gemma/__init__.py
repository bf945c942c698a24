"""DiffusionGemma's network: the class that transformers has for it, its weights and its caches.

Nothing here is imported before such a checkpoint is opened: transformers is an optional dependency.
"""
