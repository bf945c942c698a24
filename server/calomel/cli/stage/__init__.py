"""What `calomel demo` is made of: a recording is played to the real suggester, and shown while it happens."""
