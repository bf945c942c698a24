// Installing the program into a folder of the extension's own: by uv, or by Python's venv and pip. Each time into a new
// folder, so that the one before serves until the new one is complete.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, isAbsolute, join } from "node:path";
import { createInterface } from "node:readline";
import { isProgram, onPath } from "./program";

const WINDOWS = process.platform === "win32";
// Written last: a folder without it is none.
const DONE = "calomel-version";
const PYTHONS = ["python3", "python", "python3.13", "python3.12", "python3.11"];
const SUITS = "import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))";
const ASK_MS = 10_000;
// An installation that takes longer was broken off.
const UNFINISHED_MS = 3_600_000;
// torch for Linux comes with libraries of some GB for NVIDIA's cards, unless it is of this index. Without it, it is large.
const SMALL_TORCH = ["--no-deps", "--index-url", "https://download.pytorch.org/whl/cpu", "torch>=2.11"];
// The NVIDIA driver's, on Linux and in WSL2.
const CARDS = ["/proc/driver/nvidia/version", "/usr/lib/wsl/lib/nvidia-smi"];
const OFFLINE =
  /NewConnectionError|ConnectTimeout|ProxyError|name resolution|getaddrinfo|dns error|Network is unreachable|tcp connect error|error sending request|client error \(Connect\)/i;

/** What is installed, and its version; or why that can not be said. */
export type Source =
  | { readonly requirement: string; readonly version: string }
  | { readonly version: null; readonly problem: string };

export interface Tool {
  readonly kind: "uv" | "python";
  readonly program: string;
}

export interface Command {
  readonly words: readonly string[];
  readonly optional: boolean;
}

/** The wheel that is set, or else the one that came with the extension: no package index says whose a name is. */
export function source(wheel: string, shipped: string, home: string): Source {
  const came = existsSync(shipped) ? readdirSync(shipped).find((name) => name.endsWith(".whl")) : undefined;
  if (wheel === "" && came === undefined) {
    return { version: null, problem: "No wheel came with this extension: name one in calomel.wheel; `make wheel` builds it." };
  }
  const chosen = wheel === "" ? join(shipped, came ?? "") : wheel;
  const requirement = chosen.startsWith("~/") ? join(home, chosen.slice(2)) : chosen;
  const named = /^calomel-([^-]+)-.*\.whl$/.exec(basename(requirement))?.[1];
  if (named === undefined) {
    return { version: null, problem: `The setting calomel.wheel names ${wheel}, which is not a Calomel wheel.` };
  }
  if (!requirement.startsWith("https://") && !(isAbsolute(requirement) && existsSync(requirement))) {
    return { version: null, problem: `The setting calomel.wheel names ${wheel}, which is neither a file nor an https address.` };
  }
  return { requirement, version: named };
}

/** The newest complete one. */
export function installed(storage: string): { program: string; version: string; folder: string } | null {
  const names = existsSync(storage) ? readdirSync(storage).sort().reverse() : [];
  const name = names.find((each) => existsSync(join(storage, each, DONE)));
  if (name === undefined) {
    return null;
  }
  const folder = join(storage, name);
  return { program: inside(folder, "calomel"), version: readFileSync(join(folder, DONE), "utf8").trim(), folder };
}

/** What can install it: uv, or a Python that suits. */
export function findTool(path: string, home: string): Tool | null {
  const all = (name: string): string[] => onPath(WINDOWS ? `${name}.exe` : name, path).filter(isProgram);
  const [uv] = [...all("uv"), join(home, ".local", "bin", WINDOWS ? "uv.exe" : "uv")].filter(isProgram);
  if (uv !== undefined) {
    return { kind: "uv", program: uv };
  }
  const suits = (python: string): boolean => spawnSync(python, ["-c", SUITS], { timeout: ASK_MS }).status === 0;
  const python = PYTHONS.flatMap(all).find(suits);
  return python === undefined ? null : { kind: "python", program: python };
}

/** The commands that install it there; one that may fail is optional. */
export function commands({ kind, program }: Tool, folder: string, requirement: string, small: boolean): Command[] {
  const python = inside(folder, "python");
  const [make, pip] =
    kind === "uv"
      ? [["venv", "--python", ">=3.11,<3.14"], [program, "pip", "install", "--python", python]]
      : [["-m", "venv"], [python, "-m", "pip", "install", "--no-input", "--progress-bar", "off"]];
  return [
    { words: [program, ...make, folder], optional: false },
    ...(small ? [{ words: [...pip, ...SMALL_TORCH], optional: true }] : []),
    { words: [...pip, withEngine(requirement)], optional: false },
  ];
}

/** A wheel with the extras that nano and GGUF files need, as pip and uv read it. */
function withEngine(wheel: string): string {
  return wheel.startsWith("https://") ? `calomel[engine,llama] @ ${wheel}` : `${wheel}[engine,llama]`;
}

/** Install it. Rejects with a sentence for the user; what was there before serves on then. */
export async function install(
  storage: string,
  wanted: { readonly requirement: string; readonly version: string },
  tool: Tool,
  tell: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  mkdirSync(storage, { recursive: true });
  tidy(storage);
  const folder = join(storage, String(Date.now()));
  const small = process.platform === "linux" && !CARDS.some((each) => existsSync(each));
  try {
    for (const { words, optional } of commands(tool, folder, wanted.requirement, small)) {
      tell(words.join(" "));
      try {
        await run(words, storage, tell, signal);
      } catch (error) {
        if (!optional || signal.aborted) {
          throw error;
        }
      }
    }
    if (!isProgram(inside(folder, "calomel"))) {
      throw new Error("The installation finished without the program `calomel`. Check that the wheel is Calomel's, then try again.");
    }
    writeFileSync(join(folder, DONE), wanted.version);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    throw error;
  }
}

/** What a command's output says to the user. */
export function explained(lines: readonly string[]): string {
  const text = lines.join("\n");
  if (OFFLINE.test(text)) {
    return (
      "The download failed: this machine is offline, or needs a proxy (HTTPS_PROXY). " +
      "Connect it and install again, or install calomel by hand and set its path."
    );
  }
  return `It could not be installed: ${lines.at(-1) ?? "no reason was given."}`;
}

function run(
  [program = "", ...args]: readonly string[],
  cwd: string,
  tell: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const lines: string[] = [];
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, signal, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        if (line.trim() !== "") {
          lines.push(line.trim());
          tell(line);
        }
      });
    }
    let failure: Error | null = null;
    child.on("error", (error) => {
      failure = error;
    });
    // Nothing is removed while it still writes.
    child.on("close", (status) => {
      if (status === 0) {
        resolve();
      } else {
        reject(failure ?? new Error(explained(lines)));
      }
    });
  });
}

/** Remove what another one has replaced, and what never became complete. */
function tidy(storage: string): void {
  const kept = installed(storage)?.folder;
  for (const name of readdirSync(storage)) {
    const folder = join(storage, name);
    const over = existsSync(join(folder, DONE)) || Number(name) < Date.now() - UNFINISHED_MS;
    if (folder !== kept && over) {
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

function inside(folder: string, name: string): string {
  return WINDOWS ? join(folder, "Scripts", `${name}.exe`) : join(folder, "bin", name);
}
