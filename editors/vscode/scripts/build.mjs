// Bundles the extension into dist/extension.js, or, with --tests, each test into dist-test.
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const tests = process.argv.includes("--tests");

/** @type {import("esbuild").BuildOptions} */
const shared = {
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node20",
  logLevel: "warning",
};

if (tests) {
  const files = readdirSync(new URL("../test", import.meta.url)).filter((name) => name.endsWith(".test.ts"));
  await build({ ...shared, entryPoints: files.map((name) => `test/${name}`), outdir: "dist-test", sourcemap: "inline" });
} else {
  await build({
    ...shared,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    external: ["vscode"],
    minify: process.argv.includes("--minify"),
    sourcemap: false,
    legalComments: "eof",
  });
}
