// Finding the program `calomel`, and others.

import { constants, accessSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

export interface Surroundings {
  /** What the user set; empty for nothing. */
  readonly set: string;
  /** Folders of the workspace, if the user trusts it: a stranger's repository must not choose what is started. */
  readonly folders: readonly string[];
  readonly home: string;
  readonly path: string;
  /** The program that the extension installed; null for none. */
  readonly own: string | null;
  readonly windows: boolean;
  readonly isProgram: (path: string) => boolean;
}

export type Found =
  | { readonly program: string; readonly where: "setting" | "workspace" | "path" | "home" | "own" }
  /** What is set comes before what could be installed. */
  | { readonly program: null; readonly message: string; readonly set: boolean };

const VENVS = [".venv", "venv", "env"];

/** In rising order of distance: the setting, a virtual environment of the workspace, PATH, the user's own, ours. */
export function findProgram(around: Surroundings): Found {
  const name = around.windows ? "calomel.exe" : "calomel";
  const bin = around.windows ? "Scripts" : "bin";
  if (around.set !== "") {
    const program = around.set.startsWith("~/") ? join(around.home, around.set.slice(2)) : around.set;
    if (!isAbsolute(program)) {
      return { program: null, message: "The setting calomel.path is not an absolute path.", set: true };
    }
    return around.isProgram(program)
      ? { program, where: "setting" }
      : { program: null, message: `The setting calomel.path names ${program}, which is not a program.`, set: true };
  }
  const candidates = [
    ...around.folders.flatMap((folder) =>
      VENVS.map((venv) => ({ program: join(folder, venv, bin, name), where: "workspace" as const })),
    ),
    ...onPath(name, around.path).map((program) => ({ program, where: "path" as const })),
    { program: join(around.home, ".local", "share", "calomel", "venv", bin, name), where: "home" as const },
    { program: join(around.home, ".local", "bin", name), where: "home" as const },
    ...(around.own === null ? [] : [{ program: around.own, where: "own" as const }]),
  ];
  const found = candidates.find((candidate) => around.isProgram(candidate.program));
  const message = "The Calomel server is not installed, or VS Code cannot find it.";
  return found ?? { program: null, message, set: false };
}

/** What starts in place of the program that was just installed, and what to do about it. */
export function startedInstead(found: Found): string {
  return found.program === null || found.where === "setting"
    ? "the setting calomel.path names another. Clear it to use this one."
    : `VS Code starts ${found.program} instead. Remove that one to use this one.`;
}

/** Where a program of this name would be. */
export function onPath(name: string, path: string): string[] {
  return path
    .split(delimiter)
    // A relative folder on PATH would be the workspace's.
    .filter((folder) => isAbsolute(folder))
    .map((folder) => join(folder, name));
}

/** Whether it can be executed. */
export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
