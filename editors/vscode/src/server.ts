// The language server: starting it, asking it, telling it what the user did, and what it says of itself.

import { homedir } from "node:os";
import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import { CloseAction, ErrorAction, RevealOutputChannelOn, State } from "vscode-languageclient/node";
import { isCancelled } from "./cancelled";
import { Client } from "./client";
import type { InlineMiddleware } from "./inline";
import { installed, source } from "./install";
import type { Source } from "./install";
import { findProgram, isProgram } from "./program";
import type { Found } from "./program";
import { described, explicit } from "./settings";
import { isUnasked } from "./state";
import type { ServerState, Silence } from "./state";
import { idOf } from "./suggestion";
import type { EditItem } from "./suggestion";

/** How the editor's own agreement with the server is called. */
const OPTIONS = {
  extensions: true,
  other_files: true,
  extends: true,
  configuration_replaces: true,
  // What a workspace may not set is left out, see settings.ts.
  configuration_filtered: true,
};
// A server that ends so often within so long would end again.
const MOST_ENDS = 3;
const ENDS_MS = 3 * 60_000;
const STOP_MS = 3000;
// A sentence of the status bar is read in less.
const READ_MS = 10_000;

/** A next edit, and the document that it is of: where nothing is left in the one that was asked about, another one. */
export interface NextEdit {
  readonly item: EditItem;
  readonly document: vscode.TextDocument;
}

/** Something that the user must know, and what can be done about it. */
export interface Fault {
  readonly message: string;
  readonly remedy: "install" | "update" | "choose" | "restart" | "outage";
  /** What is said once per outage. */
  readonly outage?: number;
}

/** The text that is shown in a document goes on. */
export interface Extended {
  readonly uri: vscode.Uri;
  readonly id: string;
}

interface Notice {
  readonly uri: string;
  readonly kind: "fill" | "edit";
  readonly reason: string;
  readonly message: string;
}

export class Server implements vscode.Disposable {
  private client: Client | null = null;
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly faults = new vscode.EventEmitter<Fault>();
  private readonly silent = new Map<string, readonly Silence[]>();
  readonly output: vscode.LogOutputChannel;
  /** Where the extension installs a program. */
  readonly storage: string;
  private readonly told = new Set<string>();
  private hints: ReadonlySet<string> = new Set();
  private ends: number[] = [];
  private writing = false;
  private readonly started = new WeakSet<Client>();
  private restarts: Promise<void> = Promise.resolve();
  private now: ServerState = { state: "starting", message: "Calomel is starting." };
  /** Something of what it says of itself is new. */
  readonly onChange = this.changed.event;
  private readonly counts = new vscode.EventEmitter<vscode.Uri>();
  /** The last answer about a document is known to have more edits. */
  readonly onCount = this.counts.event;
  private readonly extensions = new vscode.EventEmitter<Extended>();
  /** The next answer has all of a text whose first line was given. */
  readonly onExtended = this.extensions.event;
  /** Something that the user must know. */
  readonly onFault = this.faults.event;

  constructor(
    private readonly extension: vscode.ExtensionContext,
    private readonly inline: InlineMiddleware,
  ) {
    this.output = vscode.window.createOutputChannel("Calomel", { log: true });
    this.storage = vscode.Uri.joinPath(extension.globalStorageUri, "server").fsPath;
  }

  /** How it is. */
  get state(): ServerState {
    return this.now;
  }

  /** Whether questions can be asked. */
  get isRunning(): boolean {
    return this.client?.state === State.Running;
  }

  /** Why nothing was shown last in a document, text first. */
  silences(uri: vscode.Uri | undefined): readonly Silence[] {
    return this.silent.get(uri?.toString() ?? "") ?? [];
  }

  /** Whether the user is to see no more than a mark of a suggestion of the last answer. */
  isHint(id: string | null): boolean {
    return id !== null && this.hints.has(id);
  }

  /** Something is shown there. */
  spoke(uri: vscode.Uri): void {
    if (this.silent.delete(uri.toString())) {
      this.changed.fire();
    }
  }

  /** Whether it serves a document. */
  serves(document: vscode.TextDocument): boolean {
    return document.uri.scheme === "file" && this.isRunning;
  }

  /** Find the program. */
  find(): Found {
    const folders = vscode.workspace.isTrusted ? (vscode.workspace.workspaceFolders ?? []) : [];
    return findProgram({
      set: vscode.workspace.getConfiguration("calomel").get<string>("path", "").trim(),
      folders: folders.filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath),
      home: homedir(),
      path: process.env["PATH"] ?? "",
      own: installed(this.storage)?.program ?? null,
      windows: process.platform === "win32",
      isProgram,
    });
  }

  /** What would be installed: what came with the extension, or as it is set. */
  source(): Source {
    const shipped = vscode.Uri.joinPath(this.extension.extensionUri, "server").fsPath;
    return source(vscode.workspace.getConfiguration("calomel").get<string>("wheel", "").trim(), shipped, homedir());
  }

  /** Start it. Says what is wrong through `onFault`; never rejects. */
  async start(): Promise<void> {
    const found = this.find();
    void vscode.commands.executeCommand("setContext", "calomel.found", found.program !== null);
    if (found.program === null) {
      this.fail("absent", found.message, found.set ? "choose" : "install");
      return;
    }
    if (found.where === "own") {
      this.offerUpdate();
    }
    this.output.info(`starting ${found.program} (${found.where})`);
    this.say({ state: "starting", message: "Calomel is starting." });
    const client = this.connect(found.program);
    this.client = client;
    try {
      await client.start();
      this.started.add(client);
    } catch (error) {
      this.output.error(error instanceof Error ? error : String(error));
      if (this.client === client) {
        this.client = null;
        this.fail("error", `${found.program} lsp did not start; see the output channel “Calomel”.`);
      }
    }
  }

  /** Stop it. */
  async stop(): Promise<void> {
    const client = this.client;
    this.client = null;
    this.silent.clear();
    if (client !== null) {
      try {
        await client.dispose(STOP_MS);
      } catch (error) {
        this.output.warn(`the server did not stop by itself: ${String(error)}`);
      }
    }
  }

  /** Stop it, and start it again; one restart after another. */
  async restart(): Promise<void> {
    this.restarts = this.restarts.then(async () => {
      this.ends = [];
      await this.stop();
      await this.start();
    });
    await this.restarts;
  }

  /** The next edit for a place, or null. A question that nobody waits for any more is taken back. */
  async nextEdit(
    document: vscode.TextDocument,
    position: vscode.Position,
    invoked: boolean,
    token: vscode.CancellationToken,
  ): Promise<NextEdit | null> {
    const client = this.client;
    if (client === null || !this.isRunning) {
      return null;
    }
    const { version } = document;
    const params = {
      textDocument: { uri: client.code2ProtocolConverter.asUri(document.uri), version },
      position: client.code2ProtocolConverter.asPosition(position),
      context: { triggerKind: invoked ? 1 : 2 },
      diagnostics: near(document, position),
    };
    try {
      const answer = await client.sendRequest<{ edits?: EditItem[] } | null>(
        "textDocument/copilotInlineEdit",
        params,
        token,
      );
      const item = answer?.edits?.[0];
      const named = item?.textDocument ?? params.textDocument;
      const uri = client.protocol2CodeConverter.asUri(named.uri).toString();
      const found = [document, ...vscode.workspace.textDocuments].find(
        (each) => each.uri.toString() === uri && (named.version ?? each.version) === each.version,
      );
      const stale = isCancelled(token) || document.isClosed || document.version !== version;
      return item === undefined || stale || found === undefined ? null : { item, document: found };
    } catch (error) {
      this.output.debug(`no answer: ${String(error)}`);
      return null;
    }
  }

  /** Tell of an outcome; whether it arrives does not matter to the user. */
  tell(command: "accept" | "reject" | "ignore", ...args: readonly string[]): void {
    this.execute(command, ...args).catch((error: unknown) => {
      this.output.debug(`${command}: ${String(error)}`);
    });
  }

  /** Execute a command of the server. Rejects where no server answers. */
  async execute<T>(name: string, ...args: readonly unknown[]): Promise<T> {
    return this.asked(undefined, name, ...args);
  }

  /** The same, until nobody waits for it any more. */
  async asked<T>(token: vscode.CancellationToken | undefined, name: string, ...args: readonly unknown[]): Promise<T> {
    const client = this.client;
    if (client === null || !this.isRunning) {
      throw new Error("Calomel is not running.");
    }
    const params = { command: `calomel.${name}`, arguments: args };
    return client.sendRequest<T>("workspace/executeCommand", params, token);
  }

  /** Send a notification. */
  notify(method: string, params: unknown): void {
    const client = this.client;
    if (client !== null && this.isRunning) {
      client.sendNotification(method, params).catch((error: unknown) => {
        this.output.debug(`${method}: ${String(error)}`);
      });
    }
  }

  /** Settings changed. */
  configurationChanged(): void {
    if (!this.writing) {
      this.notify("workspace/didChangeConfiguration", { settings: null });
    }
  }

  /** Write several settings, of which the server learns when all of them are written. */
  async withoutSettings(write: () => Promise<void>): Promise<void> {
    this.writing = true;
    try {
      await write();
    } finally {
      this.writing = false;
      this.configurationChanged();
    }
  }

  /** The program, to run it for something else. Throws where there is none. */
  program(): string {
    const found = this.find();
    if (found.program === null) {
      throw new Error(found.message);
    }
    return found.program;
  }

  /** Show what was written down. */
  showOutput(): void {
    this.output.show();
  }

  dispose(): void {
    this.changed.dispose();
    this.faults.dispose();
    this.counts.dispose();
    this.extensions.dispose();
    this.output.dispose();
  }

  private connect(program: string): Client {
    const middleware: Middleware = {
      ...this.inline,
      // A client of the library's own knows no hints.
      sendRequest: async (type, params, token, next) => {
        const result = await next(type, params, token);
        this.hints = hintsOf(result) ?? this.hints;
        return result;
      },
      workspace: {
        configuration: (params) =>
          params.items.map(({ section, scopeUri }) =>
            section === "calomel"
              ? this.settings(scopeUri === undefined ? undefined : vscode.Uri.parse(scopeUri))
              : null,
          ),
      },
    };
    const client: Client = new Client(
      "calomel",
      "Calomel",
      { command: program, args: ["lsp"] },
      {
        documentSelector: [{ scheme: "file" }],
        initializationOptions: { calomel: { ...this.settings(), ...OPTIONS } },
        outputChannel: this.output,
        revealOutputChannelOn: RevealOutputChannelOn.Never,
        initializationFailedHandler: () => false,
        errorHandler: {
          error: () => ({ action: ErrorAction.Continue, handled: true }),
          closed: () => ({ action: this.ended(client), handled: true }),
        },
        middleware,
      },
    );
    client.onNotification("calomel/status", (state: ServerState) => {
      if (this.client === client) {
        this.say(state);
      }
    });
    client.onNotification("calomel/count", ({ uri }: { uri: string }) => {
      this.counts.fire(client.protocol2CodeConverter.asUri(uri));
    });
    client.onNotification("calomel/extended", ({ uri, id }: { uri: string; id: string }) => {
      this.extensions.fire({ uri: client.protocol2CodeConverter.asUri(uri), id });
    });
    client.onNotification("calomel/silence", ({ uri, kind, reason, message }: Notice) => {
      const key = client.protocol2CodeConverter.asUri(uri).toString();
      const others = (this.silent.get(key) ?? []).filter((each) => each.kind !== kind);
      const all = [...others, { kind, reason, message }];
      this.silent.set(
        key,
        all.sort((a, b) => b.kind.localeCompare(a.kind)),
      );
      if (isUnasked(reason) && !this.told.has(message)) {
        this.told.add(message);
        vscode.window.setStatusBarMessage(`Calomel: ${message}`, READ_MS);
      }
      this.changed.fire();
    });
    return client;
  }

  private ended(client: Client): CloseAction {
    if (this.client !== client || !this.started.has(client)) {
      // Whoever started it says so.
      return CloseAction.DoNotRestart;
    }
    const now = Date.now();
    this.ends = [...this.ends.filter((at) => now - at < ENDS_MS), now];
    if (this.ends.length <= MOST_ENDS) {
      this.say({ state: "starting", message: "Calomel stopped. Restarting…" });
      return CloseAction.Restart;
    }
    this.fail("error", "Calomel stopped several times; see the output channel “Calomel”.");
    return CloseAction.DoNotRestart;
  }

  private settings(scope?: vscode.Uri): Record<string, unknown> {
    const manifest = this.extension.extension.packageJSON as {
      contributes: { configuration: readonly { properties: Record<string, Record<string, unknown>> }[] };
    };
    const properties = Object.assign({}, ...manifest.contributes.configuration.map((part) => part.properties)) as Record<
      string,
      Record<string, unknown>
    >;
    const configuration = vscode.workspace.getConfiguration("calomel", scope);
    return explicit(described(properties), (key) => configuration.inspect(key));
  }

  private offerUpdate(): void {
    const [here, wanted] = [installed(this.storage)?.version ?? "", this.source().version];
    if (wanted !== null && here !== wanted) {
      const message = `The Calomel server has version ${here}, but this extension needs ${wanted}.`;
      this.faults.fire({ message, remedy: "update" });
    }
  }

  private fail(state: "absent" | "error", message: string, remedy: Fault["remedy"] = "restart"): void {
    this.say({ state, message });
    this.faults.fire({ message, remedy });
  }

  private say(state: ServerState): void {
    const before = this.now;
    this.now = state;
    this.changed.fire();
    const told = before.state === state.state && before.message === state.message;
    if (state.state === "error" && !told && this.isRunning) {
      const { message, outage } = state;
      this.faults.fire(outage === undefined ? { message, remedy: "restart" } : { message, remedy: "outage", outage });
    }
  }
}

/** The names of hints in an answer with items; null in any other. */
function hintsOf(result: unknown): Set<string> | null {
  const items = (result as { items?: unknown } | null)?.items;
  if (!Array.isArray(items)) {
    return null;
  }
  const hints = (items as (EditItem & { hint?: boolean })[]).filter(({ hint }) => hint === true);
  return new Set(hints.map(({ command }) => idOf(command)).filter((id) => id !== null));
}

const NEAR_LINES = 40;
const MOST_DIAGNOSTICS = 16;
const SEVERITIES = ["error", "warning", "information", "hint"];

/** Problems that the editor shows around a place, as hints to what comes next. */
function near(document: vscode.TextDocument, position: vscode.Position): unknown[] {
  return vscode.languages
    .getDiagnostics(document.uri)
    .filter(({ range }) => Math.abs(range.start.line - position.line) <= NEAR_LINES)
    .sort((a, b) => Math.abs(a.range.start.line - position.line) - Math.abs(b.range.start.line - position.line))
    .slice(0, MOST_DIAGNOSTICS)
    .map(({ range, message, severity }) => ({
      range: { start: { ...place(range.start) }, end: { ...place(range.end) } },
      message,
      severity: SEVERITIES[severity] ?? "error",
    }));
}

function place({ line, character }: vscode.Position): { line: number; character: number } {
  return { line, character };
}
