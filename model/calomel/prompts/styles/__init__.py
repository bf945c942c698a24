"""How checkpoints of other makers are shown a hole or a region, and how their answers are read."""
