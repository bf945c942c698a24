import assert from "node:assert/strict";
import { test } from "node:test";
import { findProgram } from "../src/program";
import type { Surroundings } from "../src/program";

function around(programs: string[], more: Partial<Surroundings> = {}): Surroundings {
  return {
    set: "",
    folders: ["/w"],
    home: "/home/u",
    path: "/usr/bin:/bin",
    own: null,
    windows: false,
    isProgram: (path) => programs.includes(path),
    ...more,
  };
}

test("the setting is followed, and nothing else where it is wrong", () => {
  const programs = ["/opt/calomel", "/usr/bin/calomel", "/home/u/c"];
  assert.deepEqual(findProgram(around(programs, { set: "/opt/calomel" })), {
    program: "/opt/calomel",
    where: "setting",
  });
  assert.equal(findProgram(around(programs, { set: "~/c" })).program, "/home/u/c");
  const wrong = findProgram(around(programs, { set: "/gone" }));
  assert.ok(wrong.program === null && wrong.message.includes("calomel.path names /gone"));
  assert.equal(findProgram(around(programs, { set: "bin/calomel" })).program, null);
});

test("a workspace's virtual environment comes before PATH, PATH before the user's own", () => {
  const all = ["/w/.venv/bin/calomel", "/usr/bin/calomel", "/home/u/.local/share/calomel/venv/bin/calomel"];
  assert.equal(findProgram(around(all)).program, all[0]);
  assert.equal(findProgram(around(all.slice(1))).program, all[1]);
  assert.equal(findProgram(around(all.slice(2))).program, all[2]);
});

test("in a workspace that is not trusted nothing of it is started", () => {
  assert.equal(findProgram(around(["/w/.venv/bin/calomel"], { folders: [] })).program, null);
  assert.equal(findProgram(around(["./calomel", "calomel"], { path: ".::bin", folders: [] })).program, null);
});

test("what the extension installed is the last choice", () => {
  const own = "/storage/1/bin/calomel";
  assert.deepEqual(findProgram(around([own], { own })), { program: own, where: "own" });
  assert.equal(findProgram(around([own, "/bin/calomel"], { own })).program, "/bin/calomel");
});
