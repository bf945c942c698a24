"""Jinja for templates that nobody has read: in a sandbox, and with a budget of work for each rendering.

A template comes with a checkpoint, which may be anybody's, and its data with a request. So that a rendering ends in a
second or two and takes little memory, whatever both are:

* only filters and methods that templates of published models use are there;
* what would make a text or list longer is measured before it is made: `*`, `+`, `~`, joins, padding, formats;
* every result and every comparison is charged, by the size of what it reads or makes, and so is each round of a loop
  and each call of a macro or block, with the text that it may write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from itertools import islice
from types import BuiltinMethodType
from typing import Any, Final

from jinja2 import nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS
from jinja2.visitor import NodeTransformer

# Characters and items of one text or list.
MOST_SIZE: Final = 8_000_000
# Steps of ranges per rendering, and the items of a repeated list: templates count messages and indent.
MOST_COUNTED: Final = 100_000
# Rounds of loops, and calls of macros and blocks, per rendering; they take some tenths of a second. A call takes
# as long as four rounds.
_MOST_STEPS: Final = 200_000
_STEPS: Final[Mapping[Any, int]] = {nodes.For: 1, nodes.Macro: 4, nodes.Block: 4, nodes.CallBlock: 4}
# Characters and items that all operations of a rendering read and make: a dozen times the longest conversation.
_MOST_WORK: Final = 100_000_000
# Of one operation on small values, in characters.
_LEAST_WORK: Final = 32
_MOST_EXPONENT: Final = 64
_MOST_BITS: Final = 4096
# Of padding and indentation.
_MOST_WIDTH: Final = 1_000
_FILTERS: Final = frozenset(
    {"abs", "batch", "capitalize", "center", "count", "d", "default", "dictsort", "e", "escape", "first", "float",
     "format", "indent", "int", "items", "join", "last", "length", "list", "lower", "map", "max", "min", "reject",
     "rejectattr", "replace", "reverse", "round", "safe", "select", "selectattr", "slice", "sort", "string", "sum",
     "title", "tojson", "trim", "truncate", "unique", "upper", "wordcount"}
)  # fmt: skip
_TEXT_METHODS: Final = frozenset(
    {"capitalize", "casefold", "center", "count", "endswith", "find", "format", "index", "isalnum", "isalpha",
     "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "istitle", "isupper", "join", "ljust", "lower",
     "lstrip", "partition", "removeprefix", "removesuffix", "replace", "rfind", "rindex", "rjust", "rpartition",
     "rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "swapcase", "title", "upper", "zfill"}
)  # fmt: skip
# Tests, which `selectattr` and others take.
_COMPARISONS: Final = frozenset(
    {"in", "==", "eq", "equalto", "!=", "ne", ">", "gt", "greaterthan", ">=", "ge", "<", "lt", "lessthan", "<=", "le"}
)
# A width that another value gives, or one that is long.
_WIDE: Final = re.compile(r"%[^a-zA-Z%]*(?:\*|\d{4})|\{[^{}]*\{|\{[^{}]*\d{4}")
_STEP: Final = "calomel_step"
_READ: Final = "calomel_read"
_CONCAT: Final = "calomel_concat"


class Budget:
    """What one rendering may still do. Raises SecurityError when there is nothing left."""

    def __init__(self) -> None:
        self._counted = MOST_COUNTED
        self._steps = _MOST_STEPS
        self._work = _MOST_WORK

    def names(self) -> dict[str, Any]:
        """The functions that a prepared template calls, by name."""
        return {"range": self.range, _STEP: self.step, _READ: self.read, _CONCAT: self.concat}

    def charge(self, size: int) -> None:
        """Count an operation that reads or makes so many characters and items."""
        self._work -= size + _LEAST_WORK
        if self._work < 0:
            raise SecurityError("a template takes too much work")

    def step(self, written: int, steps: int) -> None:
        """Another round of a loop, or a call of a macro or block, and the characters of its own that it may write."""
        self._steps -= steps
        if self._steps < 0:
            raise SecurityError("a template takes too many steps")
        self.charge(written)

    def range(self, *bounds: int) -> range:
        """`range` while the budget lasts."""
        found = range(*bounds)
        self._counted -= len(found)
        if self._counted < 0:
            raise SecurityError("the ranges of a template are too long")
        return found

    def made(self, value: Any) -> Any:
        """The value, which was made just now."""
        self.charge(len(value) if isinstance(value, str | list | tuple) else 0)
        return value

    def read(self, value: Any) -> Any:
        """The value, of which everything is read now, such as to compare or to write it."""
        self.charge(self.size(value))
        return value

    def concat(self, *values: Any) -> str:
        """The texts of values, one after the other."""
        size = sum(map(self.size, values))
        _check(size)
        self.charge(size)
        return "".join(map(str, values))

    def size(self, value: Any) -> int:
        """The characters and items in a value, with what is in it; a number has as many as it is written with."""
        total, todo = 0, [value]
        while todo:
            each = todo.pop()
            if isinstance(each, str):
                total += len(each)
            elif isinstance(each, Mapping):
                todo += [*each.keys(), *each.values()]
            elif isinstance(each, list | tuple | set):
                todo += each
            total += _LEAST_WORK
            if total > min(MOST_SIZE + _LEAST_WORK, self._work):
                raise SecurityError("a value of a template is too large")
        return total - _LEAST_WORK


_CURRENT: Final[ContextVar[Budget]] = ContextVar("budget")


@contextmanager
def limited() -> Iterator[Budget]:
    """A new budget, which everything that is rendered in the context shares."""
    budget = Budget()
    token = _CURRENT.set(budget)
    try:
        yield budget
    finally:
        _CURRENT.reset(token)


@pass_context
def _written(_: Context, value: Any) -> Any:
    """A value as it is written. With the context, since Jinja would write constants when a template is parsed."""
    return _CURRENT.get().read(value)


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment of templates. What they do is charged to the budget of the context (`limited`)."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def __init__(self, **options: Any) -> None:
        # Without the optimizer, which computes constants when a template is parsed.
        super().__init__(optimized=False, finalize=_written, **options)
        self.filters = {name: _charged(name, made) for name, made in FILTERS.items() if name in _FILTERS}
        tests: Mapping[str, Any] = TESTS
        self.tests |= {name: _charged(name, made) for name, made in tests.items() if name in _COMPARISONS}
        for name in ("lipsum", "cycler", "joiner"):
            del self.globals[name]

    def add_filter(self, name: str, made: Callable[..., Any]) -> None:
        """Another filter."""
        self.filters[name] = _charged(name, made)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """The template, with calls that charge what Jinja does without asking."""
        template = super()._parse(source, name, filename)
        for kind, steps in _STEPS.items():
            for block in template.find_all(kind):
                written = sum(len(each.data) for each in block.find_all(nodes.TemplateData))
                step = _call(_STEP, [nodes.Const(written), nodes.Const(steps)])
                block.body.insert(0, nodes.ExprStmt(step).set_lineno(block.lineno))
        prepared: nodes.Template = _Charging().visit(template)
        prepared.set_environment(self)
        return prepared

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The result of an operator that could make something large."""
        budget = _CURRENT.get()
        if operator == "**":
            sizes = [side for side in (left, right) if isinstance(side, int | float)]
            if any(abs(side) > _MOST_EXPONENT for side in sizes):
                raise SecurityError("a power in a template is too large")
        elif operator == "%" and isinstance(left, str):
            _check_format(left, right if isinstance(right, tuple) else (right,), budget)
        elif isinstance(left, int) and isinstance(right, int):
            if left.bit_length() + right.bit_length() > _MOST_BITS:
                raise SecurityError("a number in a template is too large")
        elif operator == "*":
            for many, times in ((left, right), (right, left)):
                if isinstance(times, int) and hasattr(many, "__len__") and len(many) * times > MOST_COUNTED:
                    raise SecurityError("a repetition in a template is too long")
        elif hasattr(left, "__len__") and hasattr(right, "__len__"):
            _check(len(left) + len(right))
        return budget.made(super().call_binop(context, operator, left, right))

    def call(self, context: Context, called: Any, /, *args: Any, **more: Any) -> Any:
        """The result of a function, a macro, or a method."""
        budget = _CURRENT.get()
        # A format is no method, but what the sandbox makes of it.
        method = getattr(called, "__wrapped__", called)
        if isinstance(method, BuiltinMethodType) and isinstance(method.__self__, str | bytes):
            if method.__name__ not in _TEXT_METHODS:
                raise SecurityError("a template calls a method that none needs")
            args = _checked(method.__name__, (method.__self__, *args), more, budget)[1:]
            budget.read(method.__self__)
        return budget.made(super().call(context, called, *args, **more))


class _Charging(NodeTransformer):
    """Writes the calls for comparisons and parts of texts, and the one for `~`."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802 (the library's names)
        self.generic_visit(node)
        return _call(_CONCAT, node.nodes).set_lineno(node.lineno)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.expr = _call(_READ, [node.expr])
        for operand in node.ops:
            operand.expr = _call(_READ, [operand.expr])
        return node.set_lineno(node.lineno)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        part = isinstance(node.arg, nodes.Slice) and node.ctx == "load"
        return _call(_READ, [node]).set_lineno(node.lineno) if part else node


def _call(name: str, arguments: Sequence[nodes.Expr]) -> nodes.Call:
    return nodes.Call(nodes.Name(name, "load"), list(arguments), [], None, None)


def _charged(name: str, made: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that measures before it makes."""
    # What the library puts before the filter's own arguments.
    own = 1 if hasattr(made, "jinja_pass_arg") else 0

    @wraps(made)
    def charged(*args: Any, **more: Any) -> Any:
        budget = _CURRENT.get()
        rest = _checked(name, args[own:], more, budget)
        return budget.made(made(*args[:own], *rest, **more))

    return charged


def _checked(name: str, args: tuple[Any, ...], more: Mapping[str, Any], budget: Budget) -> tuple[Any, ...]:
    """The value of a filter or method, and its arguments, if what it makes is small enough."""
    check = _CHECKS.get(name)
    if not args or check is None:
        return args
    value, *rest = args
    if isinstance(value, Iterator):
        value = _listed(value)
    check(value, [*rest, *more.values()], budget)
    return (value, *rest)


def _listed(items: Iterator[Any]) -> list[Any]:
    found = list(islice(items, MOST_COUNTED + 1))
    _check(len(found), MOST_COUNTED)
    return found


def _check_padding(value: Any, given: list[Any], budget: Budget) -> None:
    width = max(_numbers(given), default=4)
    _check(width, _MOST_WIDTH)
    lines = value.count("\n") + 1 if isinstance(value, str) else 1
    _check(budget.size(value) + lines * (width + budget.size(given)))


def _check_number(value: Any, given: list[Any], budget: Budget) -> None:  # noqa: ARG001 (as the others)
    _check(max(map(abs, _numbers(given)), default=0), MOST_COUNTED)


def _check_join(value: Any, given: list[Any], budget: Budget) -> None:
    # The filter's value is the list, and the method's is what comes between its items.
    between, items = (value, given[0]) if given and not isinstance(given[0], str) else (given[:1], value)
    if isinstance(items, str):
        between, items = items, between
    many = len(items) if hasattr(items, "__len__") else MOST_COUNTED
    _check(budget.size(items) + many * budget.size(between))


def _check_replace(value: Any, given: list[Any], budget: Budget) -> None:
    text, old = str(budget.read(value)), str(given[0]) if given else ""
    _check(len(text) + (text.count(old) if old else len(text) + 1) * budget.size(given[1:]))


def _check_json(value: Any, given: list[Any], budget: Budget) -> None:
    _check(max(_numbers(given), default=0), _MOST_WIDTH)
    budget.read(value)


def _check_sum(value: Any, given: list[Any], budget: Budget) -> None:
    budget.read(value)
    if not all(isinstance(each, int | float | str) for each in given):
        raise SecurityError("a template adds up lists")


def _check_reading(value: Any, given: list[Any], budget: Budget) -> None:
    budget.read(value)
    budget.read(given)


def _numbers(given: list[Any]) -> list[int | float]:
    return [each for each in given if isinstance(each, int | float)]


_CHECKS: Final[Mapping[str, Callable[[Any, list[Any], Budget], None]]] = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill", "indent"), _check_padding),
    **dict.fromkeys(("batch", "slice", "truncate", "round"), _check_number),
    **dict.fromkeys(
        ("string", "sort", "dictsort", "unique", "list", "min", "max", "int", "float", "e", "escape"), _check_reading
    ),
    **dict.fromkeys(_COMPARISONS, _check_reading),
    "format": lambda value, given, budget: _check_format(str(value), tuple(given), budget),
    "join": _check_join,
    "replace": _check_replace,
    "sum": _check_sum,
    "tojson": _check_json,
}


def _check_format(form: str, values: tuple[Any, ...], budget: Budget) -> None:
    if _WIDE.search(form):
        raise SecurityError("a format in a template is too wide")
    _check(len(form) + (form.count("%") + form.count("{")) * (_MOST_WIDTH + budget.size(list(values))))


def _check(size: float, most: int = MOST_SIZE) -> None:
    if size > most:
        raise SecurityError("a template makes something too large")
