"""How an answer is trimmed to what fits its place; whether it is worth anything, filters decide elsewhere."""
