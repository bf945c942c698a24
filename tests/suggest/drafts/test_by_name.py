from __future__ import annotations

from tests.suggest.drafts.moment import Moment


def test_what_stands_behind_the_star_is_named() -> None:
    text = (
        "class A:\n    def load(self, path, mode, deep=False):\n        pass\n\na.load(p, 1, True)\na.load(p, mode=2)\n"
    )
    moment = Moment(text, ("path, mode", "path, *, mode"))
    assert moment.results("by_name") == ["a.load(p, mode=1, deep=True)"]


def test_an_options_object_names_all() -> None:
    text = "function load(path, mode) {\n}\n\nload(p, 1);\nload(path, mode);\nload(q);\nload({ path: r });\n"
    moment = Moment(text, ("(path, mode)", "({ path, mode })"))
    assert moment.results("by_name") == ["load({ path: p, mode: 1 });", "load({ path, mode });", "load({ path: q });"]


def test_the_parameters_before_the_options_stay_by_place() -> None:
    text = "function load(path, mode) {\n}\n\nload(p, 1);\n"
    assert Moment(text, ("path, mode", "path, { mode }")).results("by_name") == ["load(p, { mode: 1 });"]
