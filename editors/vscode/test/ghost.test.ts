import assert from "node:assert/strict";
import { test } from "node:test";
import { Ghost } from "../src/ghost";

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
