"""A workspace of one's own, with everything that listens to it."""

from __future__ import annotations

from collections.abc import Sequence

from calomel.workspace.documents import Document, Position, RangeChange
from calomel.workspace.history import Listener
from calomel.workspace.workspace import Workspace

URI = "file:///w/a.py"


class Editor:
    """Opens documents and edits the last one; its clock is moved by hand."""

    def __init__(self, text: str = "", language_id: str = "python", listeners: Sequence[Listener] = ()) -> None:
        self.now = 0.0
        self.workspace = Workspace((), lambda: self.now)
        self.workspace.listeners += listeners
        self.version = 0
        self.document = self.open(text, language_id)

    def open(self, text: str, language_id: str = "python", uri: str = URI) -> Document:
        self.version += 1
        self.document = self.workspace.open(uri, language_id, self.version, text)
        return self.document

    def replace(self, start: int, end: int, text: str) -> None:
        self.change(self.document.position_at(start), self.document.position_at(end), text)

    def change(self, start: Position, end: Position, text: str) -> None:
        self.version += 1
        self.workspace.change(self.document.uri, self.version, [RangeChange(start, end, text)])


def lines_of(text: str) -> list[tuple[int, int]]:
    """Start of each line, and where its content ends."""
    found, start, at = [], 0, 0
    while at < len(text):
        if text[at] in "\r\n":
            width = 2 if text[at : at + 2] == "\r\n" else 1
            found.append((start, at))
            at += width
            start = at
        else:
            at += 1
    found.append((start, len(text)))
    return found


def width(character: str) -> int:
    return 2 if ord(character) > 0xFFFF else 1


def offset_of(text: str, line: int, character: int) -> int:
    found = lines_of(text)
    if line >= len(found):
        return len(text)
    start, end = found[line]
    at, seen = start, 0
    while at < end and seen + width(text[at]) <= character:
        seen += width(text[at])
        at += 1
    return at


def position_of(text: str, offset: int) -> tuple[int, int]:
    found = lines_of(text)
    number = max(index for index, (start, _) in enumerate(found) if start <= offset)
    start = found[number][0]
    return number, sum(map(width, text[start:offset]))


PROGRAMS = {
    "python": (
        'import os\n\nLIMIT = 1\n\n\n@cached\ndef area(width,\n         height):\n    """döc 😀"""\n'
        '    text = f"{width} é"\n    return width * height\n\n\nclass Box(Shape):\n    sides = 3\n\n'
        "    async def grow(self): pass\n"
    ),
    "typescript": (
        "export const area = async (width: number) => {\n  const text = `x${width}é😀`;\n};\n"
        "export interface Shape { sides(): void }\nabstract class Box<T> extends Shape {\n  grow(by: T): void {}\n}\n"
    ),
    "typescriptreact": "const App = () => {\n  return <div className='a'>text {value}</div>;\n};\n",
    "go": (
        "package box\nconst Limit = 1\ntype Box struct {\n\tsides int\n}\n"
        "func (b *Box) Grow(by int) error {\n\treturn nil // é\n}\n"
    ),
    "rust": "pub struct Box { sides: i32 }\nimpl Shape for Box {\n  fn grow(&self) -> i32 { 1 }\n}\n",
    "c": "#define LIMIT 1\nstruct box { int sides; };\nstruct box *grow(struct box *it)\n{\n  return it;\n}\n",
    "ruby": "module M\n  class Box < Shape\n    def grow(by)\n      by\n    end\n  end\nend\n",
    "json": '{"a": [1, 2, {"b": null}], "é": "😀"}\n',
    "html": '<div class="a"><p>x</p><script>var a=1;</script></div>\n',
}
