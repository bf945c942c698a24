"""A field more: its definition first, then all that sets and uses it."""

from __future__ import annotations

import pytest
from tests.training.edits.told import inserted, told

from calomel.training.edits.field_added import field_added

CASES = {
    "python": (
        """class Box:
    def __init__(self, width, height):
        self.width = width
        self.height = height

    def describe(self):
        print("width", self.width)
        print(self.height)


box = Box(1, 2)
""",
        """class Box:
    def __init__(self, width):
        self.width = width

    def describe(self):
        print("width", self.width)


box = Box(1)
""",
        ["\n        self.height = height", ", height", "\n        print(self.height)", ", 2"],
    ),
    "typescript": (
        """interface Shape {
  area: number;
  label: string;
}

const square: Shape = {
  area: 4,
  label: "square",
};
""",
        """interface Shape {
  area: number;
}

const square: Shape = {
  area: 4,
};
""",
        ["\n  label: string;", '\n  label: "square",'],
    ),
    "javascript": (
        """class Box {
  constructor(width, height) {
    this.width = width;
    this.height = height;
  }

  describe() {
    console.log(this.width);
    console.log(this.height);
  }
}

const box = new Box(1, 2);
""",
        """class Box {
  constructor(width) {
    this.width = width;
  }

  describe() {
    console.log(this.width);
  }
}

const box = new Box(1);
""",
        ["\n    this.height = height;", ", height", "\n    console.log(this.height);", ", 2"],
    ),
    "go": (
        """package a

type Server struct {
	Host string
	Port int
}

func New() *Server {
	return &Server{
		Host: "localhost",
		Port: 80,
	}
}
""",
        """package a

type Server struct {
	Host string
}

func New() *Server {
	return &Server{
		Host: "localhost",
	}
}
""",
        ["\n\tPort int", "\n\t\tPort: 80,"],
    ),
    "rust": (
        """struct Server {
    host: String,
    port: u16,
}

impl Server {
    fn new() -> Self {
        Server {
            host: String::new(),
            port: 80,
        }
    }
}
""",
        """struct Server {
    host: String,
}

impl Server {
    fn new() -> Self {
        Server {
            host: String::new(),
        }
    }
}
""",
        ["\n    port: u16,", "\n            port: 80,"],
    ),
}


@pytest.mark.parametrize("language", CASES)
def test_a_field_comes_with_what_sets_and_uses_it(language: str) -> None:
    text, before, changes = CASES[language]
    stories = {story.text: story for story in told(field_added, language, text)}
    assert before in stories
    assert inserted(stories[before]) == changes
    assert stories[before].states()[-1] == text


def test_a_field_that_another_expression_needs_stays() -> None:
    head = "class A:\n    def __init__(self):\n        self.size = 1\n"
    inside = (
        head + "\n    def f(self):\n        return 2 * self.size + 1\n\n    def g(self):\n        return self.f()\n"
    )
    assert told(field_added, "python", inside) == []
    outside = head + "\n\ndef f(a):\n    return a.size\n\n\nprint(f(A()))\n"
    assert told(field_added, "python", outside) == []
