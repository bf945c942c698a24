// Builds the extension and packs it: node scripts/package.mjs [FILE.vsix]
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const out = resolve(process.argv[2] ?? `${root}/../../dist/calomel.vsix`);

mkdirSync(dirname(out), { recursive: true });
execFileSync(process.execPath, [`${root}/scripts/build.mjs`, "--minify"], { stdio: "inherit" });
execFileSync(
  process.execPath,
  [
    `${root}/node_modules/@vscode/vsce/vsce`,
    "package",
    "--no-dependencies",
    "--skip-license",
    // It asks whoever has a terminal.
    "--allow-missing-repository",
    "--out",
    out,
  ],
  { cwd: root, stdio: "inherit" },
);
