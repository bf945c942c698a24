"""What the programs of all clients send."""

FILL = {
    "prompt": "def add(a: int, b: int) -> int:\n    return ",
    "suffix": "\n\n\nprint(add(1, 2))\n",
    "max_tokens": 16,
}
EDIT = (
    "<|recently_viewed_code_snippets|>\n\n<|/recently_viewed_code_snippets|>\n\n"
    "<|current_file_content|>\ncurrent_file_path: shape.py\ndef area(width, height):\n"
    "<|code_to_edit|>\n    return w<|cursor|> * height\n<|/code_to_edit|>\n\nprint(area(1, 2))\n"
    "<|/current_file_content|>\n\n<|edit_diff_history|>\n--- shape.py\n+++ shape.py\n@@ -1,1 +1,1 @@\n"
    "-def area(w, height):\n+def area(width, height):\n<|/edit_diff_history|>\n"
)
APPLY = (
    "<|original_code|>\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n<|/original_code|>\n\n"
    "<|update_snippet|>\n# ... existing code ...\ndef two():\n    return 22\n<|/update_snippet|>"
)
CHAT = [{"role": "user", "content": "x"}]
