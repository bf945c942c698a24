"""Quality and speed, measured against the same weights decoding left to right: `calomel bench infill`, `calomel bench speed`.

Importing this package imports no torch; a bench opens the model when it runs.
"""
