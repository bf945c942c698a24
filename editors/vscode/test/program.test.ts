import assert from "node:assert/strict";
import { test } from "node:test";
import { findProgram, startedInstead } from "../src/program";
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
  const all = [
    "/w/.venv/bin/calomel",
    "/usr/bin/calomel",
    "/home/u/.local/share/calomel/venv/bin/calomel",
    "/home/u/.local/bin/calomel",
  ];
  for (const [index, program] of all.entries()) {
    assert.equal(findProgram(around(all.slice(index))).program, program);
  }
});

test("after an installation, what starts instead is named with what to do", () => {
  const programs = ["/opt/calomel", "/usr/bin/calomel"];
  assert.match(startedInstead(findProgram(around(programs))), /starts \/usr\/bin\/calomel instead\. Remove that one/);
  for (const set of ["/opt/calomel", "/gone"]) {
    assert.match(startedInstead(findProgram(around(programs, { set }))), /setting calomel\.path names another\. Clear it/);
  }
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
