"""The `calomel` command: one module per subcommand.

Nothing here imports torch, fastapi or numpy at import time: `calomel --help` answers at once, and a subcommand imports
what it needs when it runs.
"""
