/* global document, process, window */
// Drives a browser for the tests: a line of JSON asks for something, a line of JSON answers.
// node driver.mjs FOLDER_OF_PLAYWRIGHT CHROMIUM

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const [folder, chromium] = process.argv.slice(2);
const playwright = createRequire(`${folder}/`)("playwright-core");

const browser = await playwright.chromium.launch({
  executablePath: chromium,
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
});
let page = null;
const errors = [];

const actions = {
  async open({ url, width, height, scale }) {
    const context = await browser.newContext({
      viewport: { width, height },
      deviceScaleFactor: scale,
      permissions: ["clipboard-read", "clipboard-write"],
    });
    page = await context.newPage();
    await page.addInitScript({ path: fileURLToPath(new URL("eyes.js", import.meta.url)) });
    page.on("pageerror", (error) => errors.push(String(error)));
    await page.goto(url, { timeout: 170_000, waitUntil: "commit" });
    await page.waitForSelector(".monaco-workbench .part.editor", { timeout: 170_000 });
  },
  see: ({ name }) => page.evaluate((each) => window.eyes[each](), name),
  press: ({ key }) => page.keyboard.press(key),
  type: ({ text, delay }) => page.keyboard.type(text, { delay }),
  insert: ({ text }) => page.keyboard.insertText(text),
  click: ({ selector }) => page.locator(selector).first().click({ timeout: 10_000 }),
  screenshot: ({ path, clip }) => page.screenshot({ path, animations: "disabled", ...(clip ? { clip } : {}) }),
  reload: () => page.reload(),
  errors: () => errors,
  /** The text of every frame: pages of extensions, and what stands beside a step of a guide, are frames of their own. */
  frames: () =>
    Promise.all(page.frames().map((frame) => frame.evaluate(() => document.body?.textContent ?? "").catch(() => ""))),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { action, ...rest } = JSON.parse(line);
  let answer;
  try {
    answer = { value: (await actions[action](rest)) ?? null };
  } catch (error) {
    answer = { error: String(error?.stack ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
