"""`python -m calomel.cli` is the same as `calomel`."""

from calomel.cli.main import main

main()
