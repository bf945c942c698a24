"""What the recording of `calomel try` is made of: three small files, and what a person does to them, step by step.

Each step replaces one text, which stands in its file once, by another. Nothing of it comes from elsewhere.
"""

from __future__ import annotations

from typing import Final

STOCK = '''\
"""What lies in the shop, and how much of it."""

from dataclasses import dataclass


@dataclass
class Item:
    name: str
    price: float
    count: int = 0


class Stock:
    def __init__(self, items):
        self.items = items

    def add(self, item):
        self.items.append(item)

    def find(self, name):
        for item in self.items:
            if item.name == name:
                return item
        return None

    def value(self):
        total = 0.0
        for item in self.items:
            total += item.price * item.count
        return total

    def missing(self):
        return [item for item in self.items if item.count == 0]
'''

ORDER = """\
export interface Order {
  id: number;
  customer: string;
  lines: OrderLine[];
}

export interface OrderLine {
  name: string;
  price: number;
  count: number;
}

export function total(order: Order): number {
  let sum = 0;
  for (const line of order.lines) {
    sum += line.price * line.count;
  }
  return sum;
}

export function names(order: Order): string[] {
  return order.lines.map((line) => line.name);
}
"""

SHELF = """\
package shelf

type Shelf struct {
\tName  string
\tWidth int
\tboxes []Box
}

func New(name string) *Shelf {
\treturn &Shelf{Name: name}
}

func (s *Shelf) Add(box Box) {
\ts.boxes = append(s.boxes, box)
}

func (s *Shelf) Free() int {
\tused := 0
\tfor _, box := range s.boxes {
\t\tused += box.Width
\t}
\treturn s.Width - used
}
"""

FILES: Final[dict[str, str]] = {"stock.py": STOCK, "src/order.ts": ORDER, "shelf/shelf.go": SHELF}

STEPS: Final[tuple[tuple[str, str, str], ...]] = (
    # A parameter gets another name, and what uses it follows.
    ("stock.py", "def find(self, name):", "def find(self, wanted):"),
    ("stock.py", "if item.name == name:", "if item.name == wanted:"),
    # A new method, whose words stand in the file already.
    (
        "stock.py",
        "    def missing(self):\n",
        (
            "    def remove(self, name):\n        item = self.find(name)\n        if item is not None:\n"
            "            self.items.remove(item)\n\n    def missing(self):\n"
        ),
    ),
    # The attribute gets another name: many places.
    ("stock.py", "        self.items = items\n", "        self.stored = items\n"),
    ("stock.py", "        self.items.append(item)\n", "        self.stored.append(item)\n"),
    (
        "stock.py",
        "    def find(self, wanted):\n        for item in self.items:\n",
        "    def find(self, wanted):\n        for item in self.stored:\n",
    ),
    (
        "stock.py",
        "        total = 0.0\n        for item in self.items:\n",
        "        total = 0.0\n        for item in self.stored:\n",
    ),
    ("stock.py", "            self.items.remove(item)\n", "            self.stored.remove(item)\n"),
    ("stock.py", "return [item for item in self.items if", "return [item for item in self.stored if"),
    # The same change of shape, line by line, in another language.
    ("src/order.ts", "  id: number;\n", "  readonly id: number;\n"),
    ("src/order.ts", "  customer: string;\n", "  readonly customer: string;\n"),
    ("src/order.ts", "  lines: OrderLine[];\n", "  readonly lines: OrderLine[];\n"),
    (
        "src/order.ts",
        "  return order.lines.map((line) => line.name);\n}\n",
        (
            "  return order.lines.map((line) => line.name);\n}\n\n"
            "export function prices(order: Order): number[] {\n  return order.lines.map((line) => line.price);\n}\n"
        ),
    ),
    # A field is renamed.
    ("shelf/shelf.go", "\tWidth int\n", "\tRoom  int\n"),
    ("shelf/shelf.go", "return s.Width - used", "return s.Room - used"),
    (
        "shelf/shelf.go",
        "\treturn s.Room - used\n}\n",
        "\treturn s.Room - used\n}\n\nfunc (s *Shelf) Count() int {\n\treturn len(s.boxes)\n}\n",
    ),
)
