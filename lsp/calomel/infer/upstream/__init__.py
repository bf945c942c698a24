"""A model behind another server that the user runs, asked over that server's API with our prompts.

`exchange` says where it is, sends and reads, `adapters` has a class per wire format, `completer` answers questions
with one of them.
"""
