import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { described, explicit } from "../src/settings";
import type { Inspected } from "../src/settings";

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as {
  contributes: { configuration: { properties: Record<string, Record<string, unknown>> }[] };
};
const properties = Object.assign({}, ...manifest.contributes.configuration.map((part) => part.properties)) as Record<
  string,
  Record<string, unknown>
>;
const all = described(properties);

function told(values: Record<string, Inspected>): Record<string, unknown> {
  return explicit(all, (name) => values[name]);
}

test("the server is told what was set, and no default", () => {
  assert.deepEqual(told({ "suggest.maxTokens": { defaultValue: 64 } }), {});
  assert.deepEqual(told({ "suggest.maxTokens": { defaultValue: 64, globalValue: 32 } }), {
    suggest: { max_tokens: 32 },
  });
});

test("settings of the extension itself stay here", () => {
  assert.ok(all.length > 15);
  assert.deepEqual(
    all.filter(({ name }) => /^(path|editor)/.test(name)),
    [],
  );
});

test("a workspace may not choose where code goes", () => {
  const set = { "backend.url": { workspaceValue: "http://evil" }, "log.outcomeText": { workspaceFolderValue: true } };
  assert.deepEqual(told(set), {});
});

test("the earlier name of a setting is told as such, of the user alone", () => {
  assert.deepEqual(told({ "server.upstream": { globalValue: "http://127.0.0.1:8080" } }), {
    server: { upstream: "http://127.0.0.1:8080" },
  });
  assert.deepEqual(told({ "server.upstream": { workspaceValue: "http://evil" } }), {});
});

test("a workspace may lower a limit, not raise it", () => {
  const limit = (mine: number | undefined, theirs: number) =>
    told({ "suggest.maxTokens": { defaultValue: 64, globalValue: mine, workspaceValue: theirs } });
  assert.deepEqual(limit(undefined, 32), { suggest: { max_tokens: 32 } });
  assert.deepEqual(limit(undefined, 900), {});
  assert.deepEqual(limit(100, 90), { suggest: { max_tokens: 90 } });
  assert.deepEqual(limit(100, 101), { suggest: { max_tokens: 100 } });
});

test("a workspace may hide files, not let them in", () => {
  const set = { "privacy.ignore": { globalValue: ["*.sql", "!.env.ci"], workspaceValue: ["*.csv", " !.env"] } };
  assert.deepEqual(told(set), { privacy: { ignore: ["*.sql", "!.env.ci", "*.csv"] } });
});

test("the nearest of the others counts", () => {
  const set = { "suggest.enabled": { globalValue: true, workspaceValue: false, workspaceFolderValue: true } };
  assert.deepEqual(told(set), { suggest: { enabled: true } });
});
