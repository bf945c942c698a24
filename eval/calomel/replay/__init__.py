"""What a person would have accepted, judged from logs of real editing: `calomel replay`.

Importing this package imports no torch; a replay opens the model when it runs.
"""
