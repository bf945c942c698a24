"""A small program in every language that has a grammar."""

from __future__ import annotations

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
