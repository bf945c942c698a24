"""What clients of other makers send as a prompt, read into plain data; one file per format, text in, data out."""
