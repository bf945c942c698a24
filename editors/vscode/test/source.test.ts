// What would keep the extension off the Marketplace, or throw where proposed interfaces are off.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const sources = readdirSync("src").map((name) => [name, readFileSync(`src/${name}`, "utf8")] as const);
const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Record<string, unknown>;

test("nothing of the interfaces that are proposed is used", () => {
  // The first two throw when a provider is registered that merely has them, the third when it is passed; the others do nothing.
  const forbidden =
    /handleDidShowCompletionItem|handleDidPartiallyAcceptCompletionItem|registerInlineCompletionItemProvider\([^)]*,[^)]*,|handleEndOfLifetime|handleListEndOfLifetime|isInlineEdit|showInlineEditMenu|displayLocation/;
  for (const [name, text] of sources) {
    assert.doesNotMatch(text, forbidden, name);
  }
  assert.equal(manifest["enabledApiProposals"], undefined);
});

test("no command is another extension's", () => {
  for (const [name, text] of sources) {
    assert.doesNotMatch(text, /github\.copilot/, name);
  }
});
