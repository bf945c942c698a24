// Finding the program `calomel`.

import { delimiter, isAbsolute, join } from "node:path";

export interface Surroundings {
  /** What the user set; empty for nothing. */
  readonly set: string;
  /** Folders of the workspace, if the user trusts it: a stranger's repository must not choose what is started. */
  readonly folders: readonly string[];
  readonly home: string;
  readonly path: string;
  readonly windows: boolean;
  readonly isProgram: (path: string) => boolean;
}

export type Found =
  | { readonly program: string; readonly where: "setting" | "workspace" | "path" | "home" }
  | { readonly program: null; readonly message: string };

const VENVS = [".venv", "venv", "env"];

/** Makes a place of its own where `findProgram` looks, from the folder that holds a copy of Calomel's repository. */
export const INSTALL =
  "python3 -m venv ~/.local/share/calomel/venv && ~/.local/share/calomel/venv/bin/pip install ./calomel";

/** In rising order of distance: the setting, a virtual environment of the workspace, PATH, the user's own one. */
export function findProgram(around: Surroundings): Found {
  const name = around.windows ? "calomel.exe" : "calomel";
  const bin = around.windows ? "Scripts" : "bin";
  if (around.set !== "") {
    const program = around.set.startsWith("~/") ? join(around.home, around.set.slice(2)) : around.set;
    if (!isAbsolute(program)) {
      return { program: null, message: "The setting calomel.path is no absolute path." };
    }
    return around.isProgram(program)
      ? { program, where: "setting" }
      : { program: null, message: `The setting calomel.path names ${program}, which is no program.` };
  }
  const candidates = [
    ...around.folders.flatMap((folder) =>
      VENVS.map((venv) => ({ program: join(folder, venv, bin, name), where: "workspace" as const })),
    ),
    ...around.path
      .split(delimiter)
      // A relative folder on PATH would be the workspace's.
      .filter((folder) => isAbsolute(folder))
      .map((folder) => ({ program: join(folder, name), where: "path" as const })),
    { program: join(around.home, ".local", "share", "calomel", "venv", bin, name), where: "home" as const },
    { program: join(around.home, ".local", "bin", name), where: "home" as const },
  ];
  const found = candidates.find((candidate) => around.isProgram(candidate.program));
  return found ?? { program: null, message: "The program calomel is not installed, or VS Code does not find it." };
}
