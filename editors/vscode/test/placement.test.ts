import assert from "node:assert/strict";
import { test } from "node:test";
import { applied } from "../src/edit";
import { Lines } from "../src/lines";
import { asGhost, isFar } from "../src/placement";

test("an insertion at the cursor is ghost text", () => {
  const lines = new Lines("def f():\n    re\n");
  const edit = { start: 15, end: 15, text: "turn 1" };
  assert.deepEqual(asGhost(lines, edit, 15), edit);
});

test("lines put behind the cursor's line are ghost text at its end", () => {
  const text = "a = 1\nb = 2\n";
  const edit = { start: 6, end: 6, text: "new = 3\n" };
  const shown = asGhost(new Lines(text), edit, 5);
  assert.deepEqual(shown, { start: 5, end: 5, text: "\nnew = 3" });
  assert.equal(applied(text, shown), applied(text, edit));
});

test("an insertion behind the cursor in its line is ghost text with what stands between", () => {
  const lines = new Lines("f(a)\n");
  assert.deepEqual(asGhost(lines, { start: 3, end: 3, text: ", b" }, 1), { start: 1, end: 3, text: "(a, b" });
});

test("what the editor would drop is no ghost text", () => {
  const lines = new Lines("old = 1\nprint(old)\n");
  assert.equal(asGhost(lines, { start: 14, end: 17, text: "new" }, 7), null, "it removes text");
  assert.equal(asGhost(lines, { start: 0, end: 0, text: "x" }, 7), null, "it stands before the cursor");
  assert.equal(asGhost(lines, { start: 18, end: 18, text: "x" }, 7), null, "it stands in another line");
  assert.equal(asGhost(lines, { start: 8, end: 8, text: "x = 2\n" }, 8), null, "it is a line before one that is not blank");
  assert.equal(asGhost(lines, { start: 3, end: 3, text: "a\nb" }, 1), null, "it breaks the line behind the cursor");
});

test("an edit is far when it is more than two rows away, or can not be seen", () => {
  const rows = { first: 10, last: 11 };
  assert.equal(isFar(8, rows, { first: 0, last: 40 }), false);
  assert.equal(isFar(13, rows, { first: 0, last: 40 }), false);
  assert.equal(isFar(7, rows, { first: 0, last: 40 }), true);
  assert.equal(isFar(9, rows, { first: 0, last: 9 }), true);
  assert.equal(isFar(10, rows, null), false);
});
