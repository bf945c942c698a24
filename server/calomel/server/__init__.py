"""The HTTP server: the published Mercury wire format in, fills of the local model out.

It knows HTTP, its own limits and its own errors. It reaches the model through one object
(`calomel.infer.filler.Filler`); importing it loads neither torch nor weights.
"""
