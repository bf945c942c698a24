// What the command palette, the keys and the status bar's menu do.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import * as vscode from "vscode";
import { contextPage } from "./contextPage";
import type { ContextAnswer } from "./contextPage";
import type { Faults } from "./faults";
import { TAKEN } from "./inline";
import type { Inline } from "./inline";
import type { Installer } from "./installer";
import { chooseModel, useNanoMeanwhile } from "./models";
import type { Pages } from "./page";
import type { Preview } from "./preview";
import type { Server } from "./server";
import { whySilent } from "./state";
import type { Surplus } from "./surplus";
import type { Watch } from "./watch";

const REPORT_MS = 60_000;
const SNOOZE_MINUTES = [10, 30, 60, 240];
const GUIDE = "calomel.calomel#calomel.start";

export interface Parts {
  readonly server: Server;
  readonly inline: Inline;
  readonly preview: Preview;
  readonly watch: Watch;
  readonly pages: Pages;
  readonly faults: Faults;
  readonly installer: Installer;
  readonly surplus: Surplus;
}

type Handler = (...args: never[]) => unknown;

/** Register every command. */
export function registerCommands(parts: Parts): vscode.Disposable[] {
  const { server, faults } = parts;
  const commands: Record<string, Handler> = {
    [TAKEN]: (id: string) => {
      parts.surplus.begin();
      parts.inline.taken(id);
    },
    "calomel.accept": (by?: { key?: string }) => accept(parts, by?.key === "tab"),
    "calomel.acceptAll": () => acceptAll(parts),
    "calomel.acceptWord": () => acceptPiece(parts, "word"),
    "calomel.acceptLine": () => acceptPiece(parts, "line"),
    "calomel.dismiss": () => dismiss(parts),
    "calomel.suggest": () => suggest(parts),
    "calomel.toggle": said(() => toggle(parts, "global")),
    "calomel.toggleLanguage": said(() => toggle(parts, "language")),
    "calomel.toggleFile": said(() => toggle(parts, "file")),
    "calomel.snooze": said(() => snooze(parts)),
    "calomel.showContext": said(() => showContext(parts)),
    "calomel.showLog": said(() => showLog(parts)),
    "calomel.openReport": said(() => openReport(parts)),
    "calomel.chooseModel": said(() => chooseModel(server, parts.pages)),
    "calomel.useNanoMeanwhile": said(() => useNanoMeanwhile(server)),
    "calomel.feedback": said(() => feedback(parts)),
    "calomel.restart": async () => {
      faults.forget();
      await server.restart();
    },
    "calomel.install": () => parts.installer.install(),
    "calomel.choosePath": () => choosePath(),
    "calomel.openGuide": () =>
      vscode.commands.executeCommand("workbench.action.openWalkthrough", GUIDE, false),
    "calomel.openSettings": () => vscode.commands.executeCommand("workbench.action.openSettings", "calomel."),
    "calomel.showMenu": () => showMenu(parts),
  };
  return Object.entries(commands).map(([name, handler]) => vscode.commands.registerCommand(name, handler));
}

/** A command that needs the server says so where there is none. */
function said(work: () => Promise<void>): Handler {
  return async () => {
    try {
      await work();
    } catch (error) {
      await vscode.window.showWarningMessage(
        `Calomel: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  };
}

/** Whether what is shown is as old as the text before the last keys: then the server is asked what comes now. */
async function asksAnew({ preview, watch }: Parts, editor: vscode.TextEditor): Promise<boolean> {
  const stale = preview.isStale(editor);
  if (stale) {
    preview.hide();
    await watch.ask(editor, false);
  }
  return stale;
}

async function accept(parts: Parts, byTab: boolean): Promise<void> {
  const { preview, watch, surplus } = parts;
  const editor = vscode.window.activeTextEditor;
  // Keys are quicker than what the editor is told of the place they are pressed at.
  const indents = byTab && editor !== undefined && preview.tabIndents(editor);
  const takes = editor !== undefined && !indents && preview.in(editor) !== null;
  const isSurplus = surplus.isDue;
  if (takes && byTab) {
    surplus.begin();
  }
  if (editor !== undefined && !indents) {
    watch.cancel();
    if (await asksAnew(parts, editor)) {
      return;
    }
  }
  const taken = takes && (await preview.accept(editor));
  if (!taken && byTab && !isSurplus) {
    await vscode.commands.executeCommand("tab");
  }
}

async function acceptAll(parts: Parts): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor !== undefined) {
    parts.watch.cancel();
    if (!(await asksAnew(parts, editor))) {
      await parts.preview.acceptAll(editor);
    }
  }
}

async function acceptPiece(parts: Parts, size: "word" | "line"): Promise<void> {
  const { preview, inline, watch } = parts;
  const editor = vscode.window.activeTextEditor;
  if (preview.in(editor) !== null && editor !== undefined) {
    watch.cancel();
    if (!(await asksAnew(parts, editor))) {
      await preview.acceptPiece(editor, size);
    }
  } else {
    await inline.acceptPiece(size);
  }
}

async function dismiss({ preview, inline, watch }: Parts): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  watch.cancel();
  inline.cancel();
  if (editor === undefined || !preview.dismiss(editor)) {
    await inline.dismiss();
  }
}

async function suggest({ watch, inline }: Parts): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) {
    return;
  }
  const { document } = editor;
  if (vscode.workspace.getConfiguration("editor", document).get<boolean>("inlineSuggest.enabled", true)) {
    inline.ignore("asked_again");
    await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
  } else {
    await watch.ask(editor, true);
  }
}

async function toggle({ server, watch }: Parts, scope: "global" | "language" | "file"): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (scope !== "global" && document === undefined) {
    throw new Error("No file is open.");
  }
  const [language, uri] = [document?.languageId, document?.uri];
  const wish = { scope, ...(scope === "language" ? { language } : {}), ...(scope === "file" ? { uri: uri?.toString() } : {}) };
  const { enabled } = await server.execute<{ enabled: boolean }>("toggle", wish);
  if (!enabled) {
    watch.hide("turned_off");
  } else if (uri !== undefined) {
    server.spoke(uri);
  }
  const what = { global: "", language: ` for ${language ?? ""}`, file: " in this file" }[scope];
  vscode.window.setStatusBarMessage(`Calomel: suggestions${what} ${enabled ? "on" : "off"}`, 4000);
}

async function snooze({ server, watch }: Parts): Promise<void> {
  const choices = [...SNOOZE_MINUTES, 0].map((minutes) => ({
    label: minutes === 0 ? "Wake up" : minutes < 60 ? `${minutes} minutes` : `${minutes / 60} h`,
    minutes,
  }));
  const choice = await vscode.window.showQuickPick(choices, { placeHolder: "Snooze for" });
  if (choice !== undefined) {
    await server.execute("snooze", choice.minutes);
    watch.hide("turned_off");
    const document = vscode.window.activeTextEditor?.document;
    if (document !== undefined) {
      server.spoke(document.uri);
    }
  }
}

async function showContext({ server, pages }: Parts): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) {
    throw new Error("No file is open.");
  }
  const { document, selection } = editor;
  const { line, character } = selection.active;
  const answer = await server.execute<ContextAnswer>("showContext", {
    textDocument: { uri: document.uri.toString() },
    position: { line, character },
  });
  await pages.open("What the model sees.md", contextPage(answer, document.languageId));
}

async function showLog({ server }: Parts): Promise<void> {
  if (!server.isRunning) {
    server.showOutput();
    return;
  }
  const { path } = await server.execute<{ path: string }>("showLog");
  const document = await vscode.workspace.openTextDocument(vscode.Uri.file(path));
  const end = document.lineAt(document.lineCount - 1).range.end;
  await vscode.window.showTextDocument(document, { preview: true, selection: new vscode.Range(end, end) });
}

async function openReport({ server, pages }: Parts): Promise<void> {
  const program = server.program();
  await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Window, title: "Calomel: reading suggestion statistics" },
    async () => {
      const run = promisify(execFile);
      const { stdout } = await run(program, ["stats", "--details"], { timeout: REPORT_MS, env: { ...process.env, COLUMNS: "110" } });
      await pages.open("Suggestion statistics.txt", stdout, "plaintext");
    },
  );
}

const REASONS = [
  { label: "Wrong", reason: "wrong", description: "It was incorrect, or would have broken the code." },
  { label: "Not what I wanted", reason: "unwanted", description: "It may be correct, but not here." },
  { label: "Too much", reason: "too_much", description: "Only part of it was right." },
  { label: "Bad moment", reason: "bad_moment", description: "It came at the wrong moment." },
];

async function feedback({ server, preview, inline, watch }: Parts): Promise<void> {
  const id = preview.id ?? inline.id;
  if (id === null) {
    throw new Error("No suggestion to report.");
  }
  const choice = await vscode.window.showQuickPick(REASONS, { placeHolder: "What is wrong with this suggestion?" });
  if (choice !== undefined) {
    // The server takes the first outcome of a suggestion, so that this must come before any other.
    await server.execute("reject", id, choice.reason);
    watch.hide("feedback");
    await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
    vscode.window.setStatusBarMessage("Calomel: recorded on this machine; it will not come back", 4000);
  }
}

async function choosePath(): Promise<void> {
  const chosen = await vscode.window.showOpenDialog({ title: "Select the program calomel", canSelectMany: false });
  const path = chosen?.[0]?.fsPath;
  if (path !== undefined) {
    const configuration = vscode.workspace.getConfiguration("calomel");
    await configuration.update("path", path, vscode.ConfigurationTarget.Global);
  }
}

async function showMenu({ server, preview, inline }: Parts): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  const silences = server.silences(document?.uri);
  const why = whySilent(silences);
  const off = new Set<string>(silences.map(({ reason }) => reason));
  if (server.isRunning) {
    off.add((await server.execute<{ off: string | null }>("status")).off ?? "");
  }
  const turn = (reason: string, what: string): string => `Turn ${what} ${off.has(reason) ? "on" : "off"}`;
  const entry = (label: string, command: string): vscode.QuickPickItem & { command: string } => ({ label, command });
  const items = [
    ...(preview.id ?? inline.id) === null ? [] : [entry("$(feedback) Report a bad suggestion", "feedback")],
    entry(`$(circle-slash) ${turn("off_globally", "suggestions")}`, "toggle"),
    ...(document === undefined
      ? []
      : [
          entry(`$(code) ${turn("off_language", `suggestions for ${document.languageId}`)}`, "toggleLanguage"),
          entry(`$(file) ${turn("off_file", "suggestions in this file")}`, "toggleFile"),
        ]),
    entry("$(bell-slash) Snooze", "snooze"),
    entry("$(server-process) Choose a model", "chooseModel"),
    entry("$(eye) Show what the model sees", "showContext"),
    ...(server.state.state === "absent" ? [entry("$(cloud-download) Install the server", "install")] : []),
    entry("$(graph) Show suggestion statistics", "openReport"),
    entry("$(output) Show the log", "showLog"),
    entry("$(gear) Settings", "openSettings"),
    entry("$(book) Guide", "openGuide"),
    entry("$(refresh) Restart", "restart"),
  ];
  const placeHolder = `${server.state.message} ${why}`.trim();
  const choice = await vscode.window.showQuickPick(items, { title: "Calomel", placeHolder });
  if (choice !== undefined) {
    await vscode.commands.executeCommand(`calomel.${choice.command}`);
  }
}
