// Ghost text: what the editor is given to show, and what becomes of it.

import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import { isCancelled } from "./cancelled";
import type { Change, Edit } from "./edit";
import { trimmed, withLineEnds } from "./edit";
import { Ghost } from "./ghost";
import type { GhostItem } from "./ghost";
import { Lines } from "./lines";
import { asGhost } from "./placement";
import type { Server } from "./server";
import { idOf } from "./suggestion";

/** True while ghost text of ours should be on the screen. */
const CONTEXT = "calomel.ghost";
/** Executed by the editor when the user took an item. */
export const TAKEN = "calomel.taken";
// Nobody tells an extension that its ghost text is drawn; it is within a frame or two.
const DRAWN_MS = 80;

/** The part of a language client that stands between the editor's questions and the server. */
export type InlineMiddleware = Required<Pick<Middleware, "provideInlineCompletionItems">>;

/** What the editor asked. */
export interface Asked {
  readonly document: vscode.TextDocument;
  readonly position: vscode.Position;
  readonly invoked: boolean;
  readonly token: vscode.CancellationToken;
}

/** Answers with the next edit where the server has no text for the cursor; null where that is shown elsewhere. */
export type Otherwise = (asked: Asked) => Promise<vscode.InlineCompletionItem | null>;

export class Inline implements vscode.Disposable {
  /** What the editor has to show, the first one first: it does not tell which of them it shows. */
  private ghosts: readonly Ghost[] = [];
  private document: vscode.TextDocument | null = null;
  private offer: { asked: string; item: vscode.InlineCompletionItem; ghost: Ghost } | null = null;
  private latest = "";
  private told: string | null = null;
  private timer: NodeJS.Timeout | undefined;
  private server: Server | null = null;
  private otherwise: Otherwise = () => Promise.resolve(null);
  private replaces: () => void = () => undefined;
  private readonly answers = new vscode.EventEmitter<number>();
  /** Milliseconds that an answer took. */
  readonly onAnswer = this.answers.event;

  readonly middleware: InlineMiddleware = {
    provideInlineCompletionItems: async (document, position, context, token, next) => {
      const invoked = context.triggerKind === vscode.InlineCompletionTriggerKind.Invoke;
      const { offer } = this;
      this.offer = null;
      this.latest = keyOf(document);
      if (offer?.asked === placeOf(document, position)) {
        this.keep(document, [offer.ghost]);
        return [offer.item];
      }
      const editor = vscode.window.activeTextEditor;
      const cursors = editor?.document === document ? editor.selections.length : 1;
      if (cursors > 1) {
        return null;
      }
      const wanted = vscode.workspace.getConfiguration("calomel.editor", document.uri).get<boolean>("ghostText", true);
      const began = Date.now();
      const answer = wanted ? await next(document, position, context, token) : null;
      if (isCancelled(token)) {
        return null;
      }
      const items = answer instanceof vscode.InlineCompletionList ? answer.items : (answer ?? []);
      if (items.length > 0) {
        this.answers.fire(Date.now() - began);
        const made = items.map((each) => this.prepare(document, position, each)).filter((each) => each !== null);
        if (made.length > 0) {
          this.keep(
            document,
            made.map(({ ghost }) => ghost),
          );
          return made.map(({ item }) => item);
        }
      }
      const item = await this.otherwise({ document, position, invoked, token });
      return item === null || isCancelled(token) ? null : [item];
    },
  };

  /** What it works with; they need each other. `replaces` is called when ghost text takes the place of what is shown. */
  connect(server: Server, otherwise: Otherwise, replaces: () => void): void {
    this.server = server;
    this.otherwise = otherwise;
    this.replaces = replaces;
  }

  /** Whether the editor has asked about a document as it is. */
  wasAsked(document: vscode.TextDocument): boolean {
    return this.latest === keyOf(document);
  }

  /** The name of what should be on the screen. */
  get id(): string | null {
    return this.ghosts[0]?.item.id ?? null;
  }

  /** An edit as an item for a question of the editor; null where ghost text can not show it. */
  item(document: vscode.TextDocument, position: vscode.Position, edit: Edit, said: GhostItem): Made | null {
    const text = document.getText();
    const cursor = document.offsetAt(position);
    const shown = asGhost(new Lines(text), trimmed(text, edit), cursor);
    if (shown === null) {
      return null;
    }
    const range = new vscode.Range(document.positionAt(shown.start), document.positionAt(shown.end));
    const item = new vscode.InlineCompletionItem(shown.text, range, {
      command: TAKEN,
      title: "Taken",
      arguments: [said.id],
    });
    return { item, ghost: new Ghost(said, cursor, shown.text, 0) };
  }

  /** Have the editor ask, and answer with this item. */
  async push(document: vscode.TextDocument, position: vscode.Position, made: Made): Promise<void> {
    this.offer = { asked: placeOf(document, position), ...made };
    await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
  }

  /** Items are on their way to the screen. */
  keep(document: vscode.TextDocument, ghosts: readonly Ghost[]): void {
    const ghost = ghosts[0];
    if (ghost === undefined) {
      return;
    }
    this.replaces();
    this.ghosts = ghosts;
    this.document = document;
    this.server?.spoke(document.uri);
    setContext(true);
    const { version } = document;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const { id, kind, item } = ghost.item;
      const current = this.ghosts[0] === ghost && document.version === version;
      if (current && this.told !== id && vscode.window.activeTextEditor?.document === document) {
        this.told = id;
        const method = kind === "fill" ? "didShowCompletion" : "didShowInlineEdit";
        this.server?.notify(`textDocument/${method}`, { item });
      }
    }, DRAWN_MS);
  }

  /** Go along with changes of a document. */
  changed(document: vscode.TextDocument, changes: readonly Change[]): void {
    if (this.ghosts.length === 0 || this.document !== document) {
      return;
    }
    const left = this.ghosts.map((each) => each.follow(changes));
    this.ghosts = left.filter((each) => each instanceof Ghost);
    if (this.ghosts.length === 0 || left.includes("taken")) {
      // The server sees from the text what became of them.
      this.clear();
    }
  }

  /** The cursor moved. */
  moved(editor: vscode.TextEditor): void {
    const ghost = this.ghosts[0];
    if (ghost === undefined || this.document !== editor.document) {
      return;
    }
    const { selection } = editor;
    if (!selection.isEmpty || editor.document.offsetAt(selection.active) !== ghost.offset) {
      this.ignore("moved_away");
    }
  }

  /** It went away without a decision of the user. */
  ignore(reason: string): void {
    const id = this.id;
    if (id !== null) {
      this.clear();
      this.server?.tell("ignore", id, reason);
    }
  }

  /** The user took it. */
  taken(id: string): void {
    if (this.ghosts.some((each) => each.item.id === id)) {
      this.clear();
    }
    this.server?.tell("accept", id);
  }

  /** Reject it. False: there is none. */
  async dismiss(): Promise<boolean> {
    const id = this.id;
    this.clear();
    await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
    if (id !== null) {
      this.server?.tell("reject", id);
    }
    return id !== null;
  }

  /** Take the next word or line of it. */
  async acceptPiece(size: "word" | "line"): Promise<void> {
    const before = this.ghosts;
    const name = size === "word" ? "acceptNextWord" : "acceptNextLine";
    await vscode.commands.executeCommand(`editor.action.inlineSuggest.${name}`);
    // The first one that goes on with what was put in is the one of which a piece was taken.
    const after = this.ghosts[0];
    const taken = before.find((each) => each.item.id === after?.item.id);
    if (taken !== undefined && after !== undefined && after.lead > taken.lead) {
      this.server?.notify("textDocument/didPartiallyAcceptCompletion", {
        item: taken.item.item,
        acceptedLength: after.lead,
      });
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.answers.dispose();
  }

  /** The server's item with our command in it; null where the editor would not show it. */
  private prepare(
    document: vscode.TextDocument,
    position: vscode.Position,
    item: vscode.InlineCompletionItem,
  ): Made | null {
    const id = idOf(item.command);
    if (id === null || typeof item.insertText !== "string") {
      return null;
    }
    const range = item.range ?? new vscode.Range(position, position);
    const lineEnd = document.eol === vscode.EndOfLine.CRLF ? "\r\n" : "\n";
    const edit = {
      start: document.offsetAt(range.start),
      end: document.offsetAt(range.end),
      text: withLineEnds(item.insertText, lineEnd),
    };
    const said = {
      insertText: item.insertText,
      range: { start: plain(range.start), end: plain(range.end) },
      command: { command: "calomel.accept", arguments: [id] },
    };
    const made = this.item(document, position, edit, { id, kind: "fill", item: said });
    if (made === null) {
      return null;
    }
    // Units of the item's text that stand in the document already.
    const lead = Math.max(0, document.offsetAt(position) - edit.start);
    return { item: made.item, ghost: new Ghost(made.ghost.item, made.ghost.offset, made.ghost.rest, lead) };
  }

  private clear(): void {
    if (this.ghosts.length > 0 || this.timer !== undefined) {
      this.ghosts = [];
      clearTimeout(this.timer);
      setContext(false);
    }
  }
}

/** An item for the editor, and our own idea of it. */
export interface Made {
  readonly item: vscode.InlineCompletionItem;
  readonly ghost: Ghost;
}

function plain({ line, character }: vscode.Position): { line: number; character: number } {
  return { line, character };
}

function keyOf(document: vscode.TextDocument): string {
  return `${document.uri.toString()}#${document.version}`;
}

function placeOf(document: vscode.TextDocument, { line, character }: vscode.Position): string {
  return `${keyOf(document)}:${line}:${character}`;
}

function setContext(value: boolean): void {
  void vscode.commands.executeCommand("setContext", CONTEXT, value);
}
