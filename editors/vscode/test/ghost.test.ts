import assert from "node:assert/strict";
import { test } from "node:test";
import { firstUnspaced, Ghost } from "../src/ghost";

const item = { id: "s-1", kind: "fill" as const, item: {} };

test("typing along shortens it", () => {
  const left = new Ghost(item, 10, "turn a", 0).follow([{ start: 10, removed: 0, text: "tu" }]);
  assert.ok(left instanceof Ghost);
  assert.deepEqual([left.offset, left.rest, left.lead], [12, "rn a", 2]);
});

test("typed out, it is taken", () => {
  assert.equal(new Ghost(item, 1, "ab", 0).follow([{ start: 1, removed: 0, text: "ab" }]), "taken");
});

test("anything else ends it", () => {
  const ghost = new Ghost(item, 10, "turn a", 0);
  assert.equal(ghost.follow([{ start: 10, removed: 0, text: "x" }]), null);
  assert.equal(ghost.follow([{ start: 9, removed: 1, text: "" }]), null);
  assert.equal(ghost.follow([{ start: 3, removed: 0, text: "t" }]), null);
  assert.equal(
    ghost.follow([
      { start: 10, removed: 0, text: "t" },
      { start: 0, removed: 0, text: "t" },
    ]),
    null,
  );
});

test("in texts without blanks a word is taken, not a sentence", () => {
  for (const text of ["これは長い文章です。", "  สวัสดีครับทุกคน", "这是一个很长的句子。"]) {
    const word = firstUnspaced(text) ?? "";
    assert.ok(text.startsWith(word) && word.trim() !== "" && word.length < text.length / 2 + 2, word);
  }
  assert.equal(firstUnspaced("return これは"), null);
  assert.equal(firstUnspaced("größe + 1"), null);
  assert.equal(firstUnspaced(""), null);
});
