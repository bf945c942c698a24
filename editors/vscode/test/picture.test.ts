import assert from "node:assert/strict";
import { test } from "node:test";
import { hunks } from "../src/hunk";
import { Lines } from "../src/lines";
import { announcement, picture, sentence } from "../src/picture";
import type { Picture, Scene } from "../src/picture";

const SCENE: Scene = { cursor: 0, view: { first: 0, last: 50 }, tabSize: 4, preview: "auto", hints: true, key: "Tab", menu: false, chain: null, passed: false };

function drawn(before: string, after: string, scene: Partial<Scene> = {}): Picture {
  const lines = new Lines(before);
  return picture(lines, hunks(lines, { start: 0, end: before.length, text: after }), { ...SCENE, ...scene });
}

test("a renamed name is struck, the new one stands behind it, and the hint names the key", () => {
  const found = drawn("print(old)\n", "print(new)\n");
  assert.deepEqual(found.struck, [{ row: 0, start: 6, end: 9 }]);
  assert.deepEqual(found.insertions, [{ row: 0, column: 9, text: "new" }]);
  assert.deepEqual(found.hints, [{ row: 0, text: "Tab" }]);
  assert.deepEqual([found.boxes, found.far], [[], false]);
});

test("of several edits of one answer, it says which it is, and the key for all that are left", () => {
  const chain = { index: 1, total: 3, rest: [1, 2] };
  assert.deepEqual(drawn("print(old)\n", "print(new)\n", { chain }).hints, [{ row: 0, text: "Tab · 1 of 3 · Alt+A: all" }]);
  const last = drawn("a = 1\n", "first(x)\nsecond(y)\n", { chain: { index: 3, total: 3, rest: [] } });
  assert.equal(last.boxes[0]?.foot, "Tab to accept, Esc to dismiss · 3 of 3");
});

test("a rewriting stands in a box beside the longest of its lines", () => {
  const found = drawn("a = 1\nb = 2 + 3\n", "first(x)\nsecond(y)\nthird(z)\n");
  assert.equal(found.struck.length, 2);
  assert.deepEqual(found.boxes, [
    {
      row: 0,
      where: "beside",
      column: 12,
      lines: ["first(x)", "second(y)", "third(z)"],
      foot: "Tab to accept, Esc to dismiss",
    },
  ]);
  assert.deepEqual(found.hints, []);
});

test("beside long lines there is no room, so that the box stands below", () => {
  const long = `call(${"x".repeat(90)})`;
  const found = drawn(`${long}\nnext\n`, "other\nnext\n");
  assert.deepEqual([found.boxes[0]?.where, found.boxes[0]?.row, found.boxes[0]?.column], ["below", 0, 0]);
  assert.equal(drawn(`${long}\n`, "other\n", { preview: "beside" }).boxes[0]?.where, "beside");
  assert.equal(drawn("a\n", "b c d\n", { preview: "below" }).boxes[0]?.where, "below");
});

test("new lines are marked by a seam", () => {
  const found = drawn("a\nb\n", "a\nnew\nb\n");
  assert.deepEqual([found.seams, found.struck], [[1], []]);
  assert.deepEqual(found.boxes[0]?.lines, ["new"]);
});

test("far away, the hint says where it is, at the cursor and in the margin", () => {
  const before = `old = 1\n${"\n".repeat(20)}print(old)\n`;
  const found = drawn(before, before.replace("print(old)", "print(new)"));
  assert.equal(found.far, true);
  assert.deepEqual(found.hints, [{ row: 0, text: "Tab: edit on line 22 ↓" }]);
  assert.deepEqual(found.signs, [
    { row: 21, sign: "here" },
    { row: 0, sign: "down" },
  ]);
});

test("beyond what can be seen, the hint stands at that edge, too", () => {
  const before = `${"\n".repeat(99)}print(old)\n`;
  const found = drawn(before, before.replace("old", "new"), { cursor: 10, view: { first: 5, last: 30 } });
  assert.deepEqual(
    found.hints.map(({ row }) => row),
    [10, 30],
  );
  const above = drawn(`old\n${before}`, `new\n${before}`, { cursor: 60, view: { first: 50, last: 70 } });
  assert.deepEqual(
    above.hints.map(({ row, text }) => [row, text]),
    [
      [60, "Tab: edit on line 1 ↑"],
      [50, "Tab: edit on line 1 ↑"],
    ],
  );
});

test("a hint behind a long line goes behind a short one beside it, and stays where there is none", () => {
  const long = `value = old${" + old".repeat(20)}`;
  const hints = (text: string): unknown => drawn(text, text.replace("value", "other")).hints;
  assert.deepEqual(hints(`${long}\nshort\n`), [{ row: 0, text: "Tab", over: { rows: 1, column: 8 } }]);
  assert.deepEqual(hints(`short\n${long}\n# ${"b".repeat(99)}\n`), [{ row: 1, text: "Tab", over: { rows: -1, column: 8 } }]);
  assert.deepEqual(hints(`${long}\n# ${"b".repeat(99)}`), [{ row: 0, text: "Tab" }]);
});

test("hints can be turned off", () => {
  const found = drawn("a\n", "b c d\n", { hints: false });
  assert.deepEqual([found.hints, found.boxes[0]?.foot], [[], ""]);
});

test("a long rewriting is cut where it is shown, and says so", () => {
  const found = drawn("x\n", "line of it\n".repeat(40));
  assert.equal(found.boxes[0]?.lines.length, 31);
  assert.match(found.boxes[0].lines[30] ?? "", /^… \d+ more lines$/);
});

test("tabs are as wide as in the editor", () => {
  assert.deepEqual(drawn("f()\n", "f(\ta)\n").insertions[0]?.text, "    a");
  assert.equal(drawn("\tx\n", "one two\n").boxes[0]?.column, 8);
});

test("while one types past it, an edit far away is not announced, and one nearby names the key that takes it", () => {
  const far = `a\n${"\n".repeat(8)}old\n`;
  const there = drawn(far, far.replace("old", "new"), { passed: true, key: "Alt+L" });
  assert.deepEqual([there.hints, there.far], [[], true]);
  assert.deepEqual(drawn("a\nf(old)\n", "a\nf(new)\n", { passed: true, key: "Alt+L" }).hints, [{ row: 1, text: "Alt+L" }]);
});

test("an edit of another file is announced at the cursor alone, unless the user types past it", () => {
  const found = announcement("helper.py:12", { ...SCENE, cursor: 3 });
  assert.deepEqual(found.hints, [{ row: 3, text: "Tab: edit in helper.py:12" }]);
  assert.deepEqual([found.struck, found.insertions, found.boxes, found.signs], [[], [], [], []]);
  assert.deepEqual(announcement("helper.py:12", { ...SCENE, passed: true }).hints, []);
});

test("while the menu is open, the hint stands where that does not cover it", () => {
  const found = drawn("a = 1\n\nb = 2\n", "a = 1\n\nb()\nc()\n", { key: "Alt+L", menu: true });
  assert.deepEqual([found.boxes.map(({ foot }) => foot), found.hints], [[""], [{ row: 0, text: "Alt+L: edit on line 3 ↓" }]]);
  const here = drawn("a = 1\n", "b()\nc()\n", { key: "Alt+L", menu: true });
  assert.deepEqual(here.hints, [{ row: 0, text: "Alt+L" }]);
});

test("a sentence behind a long line goes behind a short one", () => {
  const lines = new Lines(`${"x".repeat(100)}\nshort\n`);
  assert.deepEqual(sentence(lines, 0, "Nothing shown.", 4).hints, [
    { row: 0, text: "Nothing shown.", over: { rows: 1, column: 8 } },
  ]);
});
