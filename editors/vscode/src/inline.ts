// Ghost text: what the editor is given to show, and what becomes of it.

import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import { cancellation, isCancelled } from "./cancelled";
import type { Change, Edit } from "./edit";
import { trimmed, withLineEnds } from "./edit";
import { firstUnspaced, Ghost } from "./ghost";
import type { GhostItem } from "./ghost";
import { Lines } from "./lines";
import { asGhost } from "./placement";
import type { Extended, Server } from "./server";
import { idOf } from "./suggestion";

/** True while ghost text of ours should be on the screen. */
const CONTEXT = "calomel.ghost";
/** Executed by the editor when the user took an item. */
export const TAKEN = "calomel.taken";
// Nobody tells an extension that its ghost text is drawn; it is within a frame or two.
const DRAWN_MS = 80;
// The editor holds its menu back until it is answered: a next edit that it has to wait for comes behind the menu.
const SILENT_MS = 100;
// The editor drops what reaches it while it stops waiting, which it does about 0.75 s after a key, without a word.
const STOPS_MS = { from: 550, to: 1000 };

/** The part of a language client that stands between the editor's questions and the server. */
export type InlineMiddleware = Required<Pick<Middleware, "provideInlineCompletionItems">>;

/** Asks the server for text. */
type Next = Parameters<InlineMiddleware["provideInlineCompletionItems"]>[4];

/** What the editor asked. */
export interface Asked {
  readonly document: vscode.TextDocument;
  readonly position: vscode.Position;
  readonly invoked: boolean;
  readonly token: vscode.CancellationToken;
}

/** Answers with the next edit where the server has no text for the cursor; null where that is shown elsewhere. */
export type Otherwise = (asked: Asked) => Promise<Made | null>;

/**
 * A question to the server. The editor stops waiting after 0.75 s and whenever its menu opens: the answer comes to the
 * screen all the same while the cursor waits for it.
 */
interface Question {
  readonly place: string;
  readonly invoked: boolean;
  /** The menu's entry that it is asked for. */
  readonly selected: string | undefined;
  readonly source: vscode.CancellationTokenSource;
  readonly answer: Promise<readonly Made[]>;
  /** Comes to nothing as soon as there is no text, and what else there may be takes its time. */
  readonly silence: Promise<readonly Made[]>;
  /** Of the editor's latest question for this place. */
  editor: vscode.CancellationToken;
  /** The editor was told that there is nothing. */
  isLeft: boolean;
}

export class Inline implements vscode.Disposable {
  /** What the editor has to show, the first one first: it does not tell which of them it shows. */
  private ghosts: readonly Ghost[] = [];
  private document: vscode.TextDocument | null = null;
  private offer: { place: string; made: readonly Made[] } | null = null;
  private question: Question | null = null;
  private next: Next | null = null;
  private latest = "";
  private left = "";
  private told: string | null = null;
  private timer: NodeJS.Timeout | undefined;
  private server: Server | null = null;
  private otherwise: Otherwise = () => Promise.resolve(null);
  private replaces: () => void = () => undefined;
  private marks: (document: vscode.TextDocument, row: number) => void = () => undefined;
  private readonly answers = new vscode.EventEmitter<number>();
  /** Milliseconds that an answer took. */
  readonly onAnswer = this.answers.event;
  private readonly menus = new vscode.EventEmitter<boolean>();
  /** The editor asked, and its menu is open or not: no extension is told of that in another way. */
  readonly onMenu = this.menus.event;

  readonly middleware: InlineMiddleware = {
    provideInlineCompletionItems: async (document, position, context, token, next) => {
      const { offer } = this;
      this.offer = null;
      this.latest = keyOf(document);
      const editor = vscode.window.activeTextEditor;
      const cursors = editor?.document === document ? editor.selections.length : 1;
      const invoked = context.triggerKind === vscode.InlineCompletionTriggerKind.Invoke;
      if (cursors > 1 || (!invoked && this.left === keyOf(document))) {
        return null;
      }
      const entry = context.selectedCompletionInfo;
      this.menus.fire(entry !== undefined);
      const agreeing = (made: readonly Made[]): readonly Made[] =>
        entry === undefined ? made : made.filter(({ item }) => goesOn(document, item, entry));
      const place = placeOf(document, position);
      const ask = async (known: Question | null): Promise<readonly Made[]> => {
        const question = known ?? this.ask(document, position, context, next);
        question.editor = token;
        return (await Promise.race([question.answer, question.silence, cancellation(token)])) ?? [];
      };
      const { question } = this;
      const known = question?.place === place && (question.invoked || !invoked) ? question : null;
      let made = offer?.place === place ? offer.made : await ask(known);
      if (made.length > 0 && agreeing(made).length === 0 && known !== null && known.selected !== entry?.text) {
        const others = await ask(null);
        if (others.length === 0) {
          // It is shown once the menu is closed.
          if (this.question?.place === place) {
            this.cancel();
          }
          void this.push(document, position, made);
        }
        made = others;
      }
      if (made.length === 0 || isCancelled(token)) {
        return null;
      }
      this.keep(
        document,
        agreeing(made).map(({ ghost }) => ghost),
      );
      return made.map(({ item }) => item);
    },
  };

  /**
   * What it works with; they need each other. `replaces` is called when ghost text takes the place of what is shown,
   * `marks` when the user is to see that there is some, and no more.
   */
  connect(
    server: Server,
    otherwise: Otherwise,
    replaces: () => void,
    marks: (document: vscode.TextDocument, row: number) => void,
  ): void {
    this.server = server;
    this.marks = marks;
    this.otherwise = otherwise;
    this.replaces = replaces;
  }

  /** Whether the editor has asked about a document as it is. */
  wasAsked(document: vscode.TextDocument): boolean {
    return this.latest === keyOf(document);
  }

  /** Ask nothing by itself about a document as it is: what is shown next is known already. */
  leave(document: vscode.TextDocument): void {
    this.left = keyOf(document);
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

  /** Have the editor ask, and answer with these items. */
  async push(document: vscode.TextDocument, position: vscode.Position, made: readonly Made[]): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document !== document || !editor.selection.isEmpty) {
      return;
    }
    const place = placeOf(document, position);
    if (placeOf(document, editor.selection.active) !== place) {
      return;
    }
    this.offer = { place, made };
    await run("trigger");
  }

  /** The first line of a text is shown: ask for all of it, and show that in its place. */
  async extend({ uri, id }: Extended): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const { next } = this;
    if (next === null || editor?.document.uri.toString() !== uri.toString() || editor.selections.length > 1) {
      return;
    }
    const { document } = editor;
    const position = editor.selection.active;
    const place = placeOf(document, position);
    const waits = (): boolean => {
      const isThere = vscode.window.activeTextEditor === editor && editor.selection.isEmpty;
      // A question of the editor's own is answered with all of it.
      return this.question === null && this.has(id) && isThere && placeOf(document, editor.selection.active) === place;
    };
    if (!waits()) {
      return;
    }
    const context = { triggerKind: vscode.InlineCompletionTriggerKind.Automatic, selectedCompletionInfo: undefined };
    const { token } = new vscode.CancellationTokenSource();
    const answer = await Promise.resolve(next(document, position, context, token)).catch(() => null);
    const made = this.prepared(document, position, itemsOf(answer));
    if (!waits() || made[0]?.ghost.item.id !== id) {
      return;
    }
    // Asked by command, the editor would keep what it shows as the first of two texts.
    void run("hide");
    await this.push(document, position, made);
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

  /** The cursor moved. True: away from where the editor asked, which does not ask again for that. */
  moved(editor: vscode.TextEditor): boolean {
    const { document, selection } = editor;
    // A change is followed by a question, which takes the place of this one.
    const { question } = this;
    const place = placeOf(document, selection.active);
    const away = question !== null && this.wasAsked(document) && (!selection.isEmpty || question.place !== place);
    if (away) {
      this.cancel();
    }
    const ghost = this.ghosts[0];
    if (ghost !== undefined && this.document === document) {
      if (!selection.isEmpty || document.offsetAt(selection.active) !== ghost.offset) {
        this.ignore("moved_away");
      }
    }
    return away;
  }

  /** Let no answer come. */
  cancel(): void {
    this.question?.source.cancel();
    this.question = null;
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
    await run("hide");
    if (id !== null) {
      this.server?.tell("reject", id);
    }
    return id !== null;
  }

  /** Take the next word or line of it. */
  async acceptPiece(size: "word" | "line"): Promise<void> {
    const before = this.ghosts;
    const word = size === "word" && before.length === 1 ? firstUnspaced(before[0]?.rest ?? "") : null;
    if (word !== null) {
      await vscode.commands.executeCommand("type", { text: word });
    } else {
      const name = size === "word" ? "acceptNextWord" : "acceptNextLine";
      await run(name);
    }
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
    this.cancel();
    clearTimeout(this.timer);
    this.answers.dispose();
    this.menus.dispose();
  }

  private ask(
    document: vscode.TextDocument,
    position: vscode.Position,
    context: vscode.InlineCompletionContext,
    next: Next,
  ): Question {
    const before = this.question;
    this.next = next;
    const began = Date.now();
    const source = new vscode.CancellationTokenSource();
    const place = placeOf(document, position);
    const invoked = context.triggerKind === vscode.InlineCompletionTriggerKind.Invoke;
    const asked = { document, position, invoked, token: source.token };
    let hasNoText: () => void = () => undefined;
    const silence = new Promise<readonly Made[]>((resolve) => {
      hasNoText = () => {
        setTimeout(() => {
          question.isLeft = true;
          resolve([]);
        }, began + SILENT_MS - Date.now());
      };
    });
    const answer = this.find(asked, context, next, hasNoText).catch(() => []);
    const selected = context.selectedCompletionInfo?.text;
    const question: Question = { place, invoked, selected, source, answer, silence, editor: source.token, isLeft: false };
    this.question = question;
    // Behind the new question: a server that knows of it can go on with what it computes for the old one.
    setTimeout(() => before?.source.cancel(), 0);
    void answer.then((made) => {
      if (this.question === question) {
        this.question = null;
        this.seeToIt(document, position, made, {
          late: isCancelled(question.editor) || question.isLeft,
          after: Date.now() - began,
          selected,
        });
      }
    });
    return question;
  }

  /** An answer reaches the screen though the editor stopped waiting. */
  private seeToIt(
    document: vscode.TextDocument,
    position: vscode.Position,
    made: readonly Made[],
    { late, after, selected }: { late: boolean; after: number; selected: string | undefined },
  ): void {
    if (made.length > 0 && late && selected === undefined) {
      void this.push(document, position, made);
    } else if (made.length > 0 && after > STOPS_MS.from && after < STOPS_MS.to) {
      setTimeout(() => {
        if (this.ghosts[0] === made[0]?.ghost) {
          void this.push(document, position, made);
        }
      }, STOPS_MS.to - after);
    }
  }

  /** Text for the cursor, else the next edit, as the editor can show it. */
  private async find(
    asked: Asked,
    context: vscode.InlineCompletionContext,
    next: Next,
    hasNoText: () => void,
  ): Promise<readonly Made[]> {
    const { document, position, token } = asked;
    const place = placeOf(document, position);
    const wanted = vscode.workspace.getConfiguration("calomel.editor", document.uri).get<boolean>("ghostText", true);
    const began = Date.now();
    const answer = wanted ? await next(document, position, context, token) : null;
    if (isCancelled(token) || placeOf(document, position) !== place) {
      return [];
    }
    const items = itemsOf(answer);
    if (items.length > 0) {
      this.answers.fire(Date.now() - began);
      if (this.server?.isHint(idOf(items[0]?.command)) === true) {
        this.marks(document, position.line);
        return [];
      }
      const made = this.prepared(document, position, items);
      if (made.length > 0) {
        return made;
      }
    }
    hasNoText();
    const made = await this.otherwise(asked);
    return made === null || isCancelled(token) ? [] : [made];
  }

  /** Whether the one text that the editor shows, or is about to show, is called so. */
  private has(id: string): boolean {
    const ghosts = this.offer?.made.map(({ ghost }) => ghost) ?? this.ghosts;
    return ghosts.length === 1 && ghosts[0]?.item.id === id;
  }

  private prepared(
    document: vscode.TextDocument,
    position: vscode.Position,
    items: readonly vscode.InlineCompletionItem[],
  ): readonly Made[] {
    return items.map((each) => this.prepare(document, position, each)).filter((each) => each !== null);
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

function itemsOf(answer: Awaited<ReturnType<Next>>): readonly vscode.InlineCompletionItem[] {
  return answer instanceof vscode.InlineCompletionList ? answer.items : (answer ?? []);
}

/** Whether an item goes on with an entry of the editor's menu: the editor shows no other while that is selected. */
function goesOn(
  document: vscode.TextDocument,
  { insertText, range }: vscode.InlineCompletionItem,
  entry: vscode.SelectedCompletionInfo,
): boolean {
  const before = new vscode.Range(entry.range.start, range?.start ?? entry.range.end);
  return typeof insertText === "string" && `${document.getText(before)}${insertText}`.startsWith(entry.text);
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

/** Run a command of the editor for its ghost text. */
async function run(name: "trigger" | "hide" | "acceptNextWord" | "acceptNextLine"): Promise<void> {
  await vscode.commands.executeCommand(`editor.action.inlineSuggest.${name}`);
}

function setContext(value: boolean): void {
  void vscode.commands.executeCommand("setContext", CONTEXT, value);
}
