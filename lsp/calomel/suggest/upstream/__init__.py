"""A model behind another server that the user runs: it is asked in that server's own words, with prompts of ours.

`target` says where it is, `exchange` sends and reads, `adapters` has a class for each wire format, `completer` answers
questions with one of them.
"""
