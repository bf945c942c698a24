import assert from "node:assert/strict";
import { test } from "node:test";
import { applied } from "../src/edit";
import { idOf, Suggestion } from "../src/suggestion";

function item(line: number, from: number, to: number, text: string) {
  return {
    text,
    range: { start: { line, character: from }, end: { line, character: to } },
    command: { command: "calomel.accept", arguments: ["s-1"] },
  };
}

const TEXT = "new = 1\n\n\n\nprint(old)\n";

function made(): Suggestion {
  const found = Suggestion.of(item(4, 0, 10, "print(new)"), TEXT, 0);
  assert.ok(found !== null);
  return found;
}

test("what the server sends becomes the least edit", () => {
  const found = made();
  assert.deepEqual([found.id, found.edit, found.distance], ["s-1", { start: 17, end: 20, text: "new" }, 4]);
  assert.equal(found.start, 17);
});

test("the cursor goes where the server's edit ends, wherever the least edit does", () => {
  const text = "show(price, 1)\n";
  const found = Suggestion.of(item(0, 5, 10, "unit_price"), text, 0);
  assert.ok(found !== null);
  assert.deepEqual([found.edit, found.behind, found.isPartial], [{ start: 5, end: 5, text: "unit_" }, 15, true]);
  const later = found.follow(`x${text}`, [{ start: 0, removed: 0, text: "x" }]);
  assert.equal(later?.behind, 16);
  const other = found.follow("show(prices, 1)\n", [{ start: 10, removed: 0, text: "s" }]);
  assert.deepEqual([other?.behind, other?.isPartial], [15, true]);
  assert.equal(Suggestion.of(item(0, 5, 10, "prices"), text, 0)?.isPartial, false);
});

test("all that follow from one answer are put in with it, until the text changes", () => {
  const text = "a(1)\nkeep\nb(1)\n\nc(1)\n";
  const { range, text: last } = item(4, 2, 3, "2");
  const first = { ...item(0, 2, 3, "2)\nkeep\nb(2"), chain: { index: 1, total: 2, rest: [{ range, text: last }] } };
  first.range.end = { line: 2, character: 3 };
  const found = Suggestion.of(first, text, 0);
  assert.ok(found !== null);
  const places = [2, 12, 18].map((start) => ({ start, end: start + 1, text: "2" }));
  assert.deepEqual([found.edits, found.all], [places.slice(0, 2), places]);
  const later = found.follow(`x${text}`, [{ start: 0, removed: 0, text: "x" }]);
  assert.deepEqual([later?.chain?.total, later?.chain?.rest], [2, []]);
});

test("an answer without a name, or that changes nothing, is none", () => {
  assert.equal(Suggestion.of({ ...item(4, 0, 10, "x"), command: { command: "c" } }, TEXT, 0), null);
  assert.equal(Suggestion.of(item(4, 0, 10, "print(old)"), TEXT, 0), null);
  assert.equal(idOf({ arguments: [1] }), null);
});

test("a place beyond the text is its end", () => {
  const found = Suggestion.of(item(99, 5, 9, "x\n"), "a\n", 0);
  assert.deepEqual(found?.edit, { start: 2, end: 2, text: "x\n" });
});

test("line ends of the answer become the document's", () => {
  const found = Suggestion.of(item(0, 0, 1, "b\nc"), "a\r\n", 0);
  assert.equal(applied("a\r\n", found?.edit ?? { start: 0, end: 0, text: "" }), "b\r\nc\r\n");
});

test("it moves with lines typed above it, and ends when its text changes", () => {
  const above = made().follow(`# x\n${TEXT}`, [{ start: 0, removed: 0, text: "# x\n" }]);
  assert.deepEqual(above?.edit, { start: 21, end: 24, text: "new" });
  assert.deepEqual(above.rows, { first: 5, last: 5 });
  assert.equal(made().follow(TEXT.replace("old", "odd"), [{ start: 18, removed: 1, text: "d" }]), null);
});

test("taken piece by piece, it says how much of it was taken", () => {
  const text = "a = 1\nb = 2\n";
  const found = Suggestion.of(item(0, 0, 0, "x = 1\ny = 2\n"), text, 0);
  const split = found?.split("line");
  assert.ok(split?.rest != null);
  assert.deepEqual(split.piece, { start: 0, end: 0, text: "x = 1\n" });
  assert.equal(split.accepted, 6);
  assert.equal(applied(text, split.piece), split.rest.lines.text);
  assert.equal(split.rest.id, "s-1");
  const last = split.rest.split("line");
  assert.equal(last?.rest, null);
});
