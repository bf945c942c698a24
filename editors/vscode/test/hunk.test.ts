import assert from "node:assert/strict";
import { test } from "node:test";
import { applied } from "../src/edit";
import type { Edit } from "../src/edit";
import { hunks, pieceOf, rowsOf } from "../src/hunk";
import { Lines } from "../src/lines";

function between(before: string, after: string): { lines: Lines; edit: Edit } {
  return { lines: new Lines(before), edit: { start: 0, end: before.length, text: after } };
}

test("a renamed name is one part of its line", () => {
  const { lines, edit } = between("x\nprint(old)\ny", "x\nprint(new)\ny");
  assert.deepEqual(hunks(lines, edit), [
    { kind: "line", row: 1, count: 1, lines: ["print(new)"], parts: [{ start: 6, end: 9, text: "new" }] },
  ]);
});

test("a longer name is an insertion into it", () => {
  const { lines, edit } = between("f(na)", "f(name)");
  assert.deepEqual(hunks(lines, edit)[0]?.parts, [{ start: 4, end: 4, text: "me" }]);
});

test("a line that is another one is replaced as a whole, and its neighbours with it", () => {
  const { lines, edit } = between("a = 1\nb = 2\nend", "first(x)\nsecond(y)\nend");
  assert.deepEqual(
    hunks(lines, edit).map(({ kind, row, count, lines: now }) => [kind, row, count, now]),
    [["replace", 0, 2, ["first(x)", "second(y)"]]],
  );
});

test("new lines and lines that go are told apart", () => {
  const added = between("a\nb", "a\nnew\nb");
  assert.deepEqual(
    hunks(added.lines, added.edit).map(({ kind, row, count }) => [kind, row, count]),
    [["insert", 1, 0]],
  );
  const gone = between("a\nold\nb", "a\nb");
  assert.deepEqual(
    hunks(gone.lines, gone.edit).map(({ kind, row, count }) => [kind, row, count]),
    [["delete", 1, 1]],
  );
});

test("an edit within lines is seen with what stands around it", () => {
  const lines = new Lines("one\ntwo\nthree");
  const found = hunks(lines, { start: 5, end: 9, text: "X" });
  assert.deepEqual(
    found.map(({ kind, row, count, lines: now }) => [kind, row, count, now]),
    [["replace", 1, 2, ["tXhree"]]],
  );
});

test("rows of changes end with the text", () => {
  const { lines, edit } = between("a", "a\nb");
  assert.deepEqual(rowsOf(hunks(lines, edit), 0), { first: 0, last: 0 });
});

test("taking piece after piece gives what the edit gives", () => {
  const pairs: [string, string][] = [
    ["x = old + old\n", "x = new + new\n"],
    ["a\nb\nc\n", "a\nnew one\nnew two\nb\nc\n"],
    ["a\nb\nc", "a\nb\nc\nd\ne"],
    ["a\nb\nc", "a"],
    ["a\r\nb\r\n", "a\r\nx y z\r\nb\r\n"],
    ["a = 1\nb = 2\nend", "first(x)\nsecond(y)\nend"],
    ["one\ntwo\nthree\nfour", "uno\nthree\nquattro\ncinque\nsei"],
    ["def f(a):\n    return a\n", "async def f(a, b):\n    x = a\n    return x\n"],
    ["old\n", ""],
    ["", "new\nlines"],
  ];
  for (const size of [true, false]) {
    for (const [before, after] of pairs) {
      let text = before;
      let steps = 0;
      while (text !== after) {
        const { lines, edit } = between(text, after);
        const first = hunks(lines, edit)[0];
        assert.ok(first !== undefined && steps < 20, JSON.stringify([before, after, text]));
        text = applied(text, pieceOf(lines, first, size));
        steps += 1;
      }
    }
  }
});
