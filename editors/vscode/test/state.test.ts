import assert from "node:assert/strict";
import { test } from "node:test";
import { Latency } from "../src/latency";
import { isOffHere, statusItem, whySilent } from "../src/state";

const READY = { state: "ready", message: "nano is ready." } as const;
const OFF = { kind: "fill", reason: "off_language", message: "Suggestions are off for this language." } as const;

test("the status bar says that it is ready, loading, off, off here, or slow", () => {
  const text = (...args: Parameters<typeof statusItem>) => statusItem(...args).text;
  assert.equal(text(READY, [], null, false), "$(sparkle) Calomel");
  assert.match(text({ state: "loading", message: "" }, [], null, false), /loading$/);
  assert.match(text({ state: "off", message: "" }, [], null, false), /: off$/);
  assert.match(text(READY, [OFF], null, false), /off here$/);
  assert.match(text(READY, [], 2000, true), /slow$/);
  assert.match(text(READY, [{ kind: "fill", reason: "timeout", message: "" }], null, false), /slow$/);
  assert.equal(statusItem({ state: "absent", message: "" }, [], null, false).level, "error");
});

test("its tooltip says why", () => {
  assert.match(statusItem(READY, [OFF], 80, false).tooltip, /nano is ready\..*Nothing shown: .*this language\..*80 ms/s);
});

test("a silence that the next key may end is not off", () => {
  assert.equal(isOffHere([{ kind: "fill", reason: "low_confidence", message: "" }]), false);
  assert.equal(isOffHere([]), false);
});

test("text and edits may be silent for two reasons", () => {
  const edit = { kind: "edit", reason: "no_change", message: "The model would change nothing." } as const;
  const fill = { kind: "fill", reason: "empty", message: "The model suggested nothing." } as const;
  assert.equal(whySilent([fill, edit]), `No completion: ${fill.message} No next edit: ${edit.message}`);
  assert.equal(whySilent([edit]), `Nothing shown: ${edit.message}`);
  assert.equal(whySilent([OFF, { ...OFF, kind: "edit" }]), `Nothing shown: ${OFF.message}`);
  assert.equal(whySilent([]), "");
});

test("slow is what the middle one of several answers was", () => {
  const latency = new Latency();
  for (const each of [5000, 5000, 5000, 5000]) {
    latency.add(each);
  }
  assert.equal(latency.median, null);
  latency.add(100);
  assert.equal(latency.isSlow, true);
  for (let count = 0; count < 20; count += 1) {
    latency.add(100);
  }
  assert.equal(latency.isSlow, false);
});

test("what was said of a model that was away is over when it is there", () => {
  const away = { kind: "fill", reason: "no_model", message: "No model answers." } as const;
  const said = (state: "ready" | "error") => statusItem({ state, message: "nano" }, [away], null, false).tooltip;
  assert.equal(said("ready"), "nano");
  assert.equal(said("error"), "nano\n\nNothing shown: the model is away.");
  assert.equal(whySilent([away, { ...away, kind: "edit", reason: "loading", message: "It loads." }]), "Nothing shown: No model answers.");
});
