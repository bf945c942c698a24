"""Quality and speed next to the same weights decoding left to right: `calomel bench infill`, `calomel bench speed`.

Importing this package imports no torch; a bench opens the model when it runs.
"""
