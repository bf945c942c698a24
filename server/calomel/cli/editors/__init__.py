"""What `calomel editor setup` writes and prints for each editor."""
