import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, test } from "node:test";
import { commands, explained, findTool, install, installed, source } from "../src/install";

let folder = "";
let storage = "";
beforeEach(() => {
  if (folder !== "") {
    rmSync(folder, { recursive: true });
  }
  folder = mkdtempSync(join(tmpdir(), "calomel-"));
  storage = join(folder, "storage");
});

function program(name: string, script: string): string {
  const path = join(folder, name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

/** A Python that makes virtual environments of itself, and has a program calomel installed at once. */
function python(name = "python3"): string {
  const log = join(folder, "asked");
  const make = `[ "$2" = venv ] && mkdir -p "$3/bin" && cp "$0" "$3/bin/python"`;
  const pip = `[ "$2" = pip ] && cp "$0" "$(dirname "$0")/calomel"`;
  return program(name, `echo "$@" >> ${log}\n[ "$1" = -c ] && exit 0\n${make}\n${pip}\nexit 0`);
}

const WANTED = { requirement: "/w/calomel-0.2.0-py3-none-any.whl", version: "0.2.0" };

async function run(tool: string, kind: "uv" | "python" = "uv", signal = new AbortController().signal): Promise<string[]> {
  const lines: string[] = [];
  await install(storage, WANTED, { kind, program: tool }, (line) => lines.push(line), signal);
  return lines;
}

test("what is installed is the wheel that is set, or the one that came with the extension", () => {
  const wheel = join(folder, "calomel-0.3.0-py3-none-any.whl");
  writeFileSync(wheel, "");
  const url = "https://example.org/calomel-0.4.0-py3-none-any.whl";
  const shipped = join(folder, "server");
  assert.match((source("", shipped, folder) as { problem: string }).problem, /name one in calomel\.wheel/);
  mkdirSync(shipped);
  const came = join(shipped, "calomel-0.2.0-py3-none-any.whl");
  writeFileSync(came, "");
  assert.deepEqual(source("", shipped, folder), { requirement: came, version: "0.2.0" });
  assert.deepEqual(source(wheel, shipped, folder), { requirement: wheel, version: "0.3.0" });
  assert.deepEqual(source("~/calomel-0.3.0-py3-none-any.whl", shipped, folder), { requirement: wheel, version: "0.3.0" });
  assert.deepEqual(source(url, shipped, folder), { requirement: url, version: "0.4.0" });
  for (const wrong of [url.replace("https", "http"), "/gone/calomel-1-py3-none-any.whl", "calomel-1-x.whl", "--pre"]) {
    assert.equal(source(wrong, shipped, folder).version, null, wrong);
  }
});

test("uv is what installs it, or else a Python that suits", () => {
  const bin = join(folder, "bin");
  assert.equal(findTool(`.:${bin}`, folder), null);
  program("bin/python3", "exit 1");
  assert.equal(findTool(bin, folder), null);
  const suits = python("bin/python3.12");
  assert.deepEqual(findTool(bin, folder), { kind: "python", program: suits });
  const uv = program("bin/uv", "");
  assert.deepEqual(findTool(bin, folder), { kind: "uv", program: uv });
});

test("where no card is torch is the small one, if it can be had", async () => {
  for (const kind of ["uv", "python"] as const) {
    const all = commands({ kind, program: "/p" }, "/s/1", "/w/calomel-1.whl", true);
    assert.deepEqual(all.map(({ optional }) => optional), [false, true, false]);
    assert.match(all[1]?.words.join(" ") ?? "", / install .*--no-deps --index-url \S+cpu torch>=/);
    const [, other] = commands({ kind, program: "/p" }, "/s/1", "https://example.org/calomel-1.whl", false);
    assert.equal(all[2]?.words.at(-1), "/w/calomel-1.whl[engine,llama]");
    assert.equal(other?.words.at(-1), "calomel[engine,llama] @ https://example.org/calomel-1.whl");
  }
  const uv = program("uv", `case "$*" in *torch*) exit 1;; *venv*) mkdir -p "$4/bin";; *) cp "$0" "$(dirname "$4")/calomel"; esac`);
  await run(uv);
  assert.equal(installed(storage)?.version, "0.2.0");
});

test("Python makes an environment with its own pip", async () => {
  await run(python(), "python");
  assert.match(readFileSync(join(folder, "asked"), "utf8"), /^-m venv \S+\n(?:.*\n)?-m pip install .* \S+0\.2\.0-py3-none-any\.whl\[engine,llama\]\n$/);
  const { program: calomel, version } = installed(storage) ?? {};
  assert.ok(version === "0.2.0" && calomel !== undefined && existsSync(calomel));
});

test("the one before serves until the new one is complete, and is gone with the one after it", async () => {
  const tool = python();
  await run(tool, "python");
  const first = installed(storage);
  await assert.rejects(run(program("uv", "echo one; echo two >&2; exit 2")), /could not be installed: two$/);
  assert.deepEqual([installed(storage), readdirSync(storage).length], [first, 1]);
  await run(tool, "python");
  assert.notEqual(installed(storage)?.folder, first?.folder);
  await run(tool, "python");
  assert.equal(readdirSync(storage).length, 2);
  assert.ok(!existsSync(first?.folder ?? ""));
});

test("a cancelled one leaves nothing behind", async () => {
  const stop = new AbortController();
  const uv = program("uv", `mkdir -p "$4"; echo begun > ${folder}/begun; while :; do sleep 0.05; done`);
  const done = run(uv, "uv", stop.signal);
  const poll = setInterval(() => {
    if (existsSync(join(folder, "begun"))) {
      stop.abort();
    }
  }, 5);
  await assert.rejects(done);
  clearInterval(poll);
  assert.deepEqual(readdirSync(storage), []);
});

test("without a program in it nothing is installed", async () => {
  await assert.rejects(run(program("uv", "exit 0")), /without the program `calomel`/);
  assert.equal(installed(storage), null);
});

test("what is wrong is said with what to do", () => {
  const pip = "WARNING: Retrying ... NewConnectionError(... [Errno -3] Temporary failure in name resolution')";
  const uv = "error: Failed to fetch: `https://pypi.org/simple/calomel/`\n  Caused by: dns error: failed to lookup";
  for (const text of [pip, uv]) {
    assert.match(explained([...text.split("\n"), "ERROR: none found"]), /this machine is offline.*set its path\.$/);
  }
  assert.equal(explained(["ERROR: No space left on device"]), "It could not be installed: ERROR: No space left on device");
});
