import assert from "node:assert/strict";
import { test } from "node:test";
import { canHoldBack, heldBack } from "../src/menu";

test("an editor can hold its menu back from 1.121 on", () => {
  assert.deepEqual(["1.91.0", "1.120.2", "1.121.0", "1.139.1-insider", "2.0.0"].map(canHoldBack), [
    false,
    false,
    true,
    true,
    true,
  ]);
});

test("the menu is held back in code, and what else is set stays", () => {
  const held = "offWhenInlineCompletions";
  assert.deepEqual(heldBack({ other: "on", comments: "off", strings: true }), { other: held, comments: "off", strings: true });
  assert.deepEqual(heldBack(true), { other: held, comments: "on", strings: "on" });
});

test("a menu that does not open by itself, or is held back, is left alone", () => {
  for (const setting of [false, "off", "inline", { other: false }, { other: "offWhenInlineCompletions" }, undefined]) {
    assert.equal(heldBack(setting), null);
  }
});
