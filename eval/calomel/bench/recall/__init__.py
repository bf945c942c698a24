"""What repeating what stands elsewhere is worth beside a model's own answers."""
