"""What `calomel doctor` looks at: one file a subject."""
