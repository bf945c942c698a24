import assert from "node:assert/strict";
import { test } from "node:test";
import { applied, rebased, shared, slid, trimmed, withLineEnds } from "../src/edit";

test("what old and new text share is left out", () => {
  assert.deepEqual(trimmed("x = old + 1", { start: 0, end: 11, text: "x = new + 1" }), { start: 4, end: 7, text: "new" });
});

test("trimming keeps what the edit gives", () => {
  for (const [text, edit] of [
    ["aaa", { start: 0, end: 3, text: "aaaa" }],
    ["abab", { start: 0, end: 4, text: "ab" }],
    ["", { start: 0, end: 0, text: "x" }],
    ["x", { start: 0, end: 1, text: "" }],
    ["a\r\nb", { start: 0, end: 4, text: "a\r\nc\r\nb" }],
  ] as const) {
    assert.equal(applied(text, trimmed(text, edit)), applied(text, edit));
  }
});

test("neither a character nor a line end is cut in half", () => {
  assert.deepEqual(shared("😀", "😁"), { front: 0, back: 0 });
  assert.deepEqual(trimmed("😀", { start: 0, end: 2, text: "😁" }), { start: 0, end: 2, text: "😁" });
  assert.deepEqual(trimmed("a\r\n", { start: 0, end: 3, text: "a\r" }), { start: 1, end: 3, text: "\r" });
});

test("an insertion slides to where it gives the same", () => {
  const text = "a\nb\n";
  const edit = { start: 2, end: 2, text: "x\n" };
  const moved = slid(text, edit, 1);
  assert.deepEqual(moved, { start: 1, end: 1, text: "\nx" });
  assert.equal(applied(text, moved), applied(text, edit));
  assert.equal(slid(text, edit, 0), null);
  assert.equal(slid(text, { start: 0, end: 1, text: "x" }, 0), null);
});

test("a change before an edit moves it, one behind it does not, one in it ends it", () => {
  const edit = { start: 10, end: 13, text: "new" };
  assert.deepEqual(rebased(edit, { start: 2, removed: 1, text: "abc" }), { start: 12, end: 15, text: "new" });
  assert.deepEqual(rebased(edit, { start: 13, removed: 0, text: "x" }), edit);
  assert.deepEqual(rebased(edit, { start: 10, removed: 0, text: "x" }), { start: 11, end: 14, text: "new" });
  assert.equal(rebased(edit, { start: 11, removed: 1, text: "" }), null);
});

test("typing what an insertion inserts shortens it", () => {
  const edit = { start: 4, end: 4, text: "name" };
  assert.deepEqual(rebased(edit, { start: 4, removed: 0, text: "na" }), { start: 6, end: 6, text: "me" });
  assert.equal(rebased(edit, { start: 4, removed: 0, text: "x" }), null);
  assert.equal(rebased(edit, { start: 4, removed: 0, text: "name" }), null);
});

test("line ends are the document's", () => {
  assert.equal(withLineEnds("a\nb\r\nc\rd", "\r\n"), "a\r\nb\r\nc\r\nd");
});
