// The next edit that is shown by decorations of our own, and what the keys do with it.

import { posix } from "node:path";
import * as vscode from "vscode";
import type { Change, Edit } from "./edit";
import { Lines } from "./lines";
import type { Painter } from "./painter";
import { announcement, mark, picture, sentence } from "./picture";
import type { Scene } from "./picture";
import type { View } from "./placement";
import { isFar, rowsAway } from "./placement";
import type { Server } from "./server";
import type { Suggestion } from "./suggestion";

/** True while an edit is shown: the keys are bound by it. */
const CONTEXT = "calomel.nextEdit";
/** True where Tab indents rather than takes what is shown. */
const INDENTS = "calomel.tabIndents";
// The editor has drawn by then what was set.
const DRAWN_MS = 30;
// Rows beyond those at which an edit was shown; further away the user is busy elsewhere.
const PATIENT_ROWS = 5;
// A sentence, or a word, is read in less.
const SAID_MS = 6000;
const DONE_MS = 1500;

/** A suggestion of text at the cursor that replaces text is shown here, too. */
export type Kind = "fill" | "edit";

interface Shown {
  readonly suggestion: Suggestion;
  readonly editor: vscode.TextEditor;
  readonly kind: Kind;
  /** A piece of it was taken. */
  readonly begun: boolean;
  /** The document that it is of, where the editor has another one. */
  readonly there: vscode.TextDocument | null;
  /** Of the cursor. */
  readonly row: number;
  /** The user typed past it, and the server has not said yet what comes now. */
  readonly stale: boolean;
}

export class Preview {
  private shown: Shown | null = null;
  private told: string | null = null;
  private timer: NodeJS.Timeout | undefined;
  /** What was shown when the user typed on. */
  private passed: Suggestion | null = null;
  private indents = false;
  /** The editor's menu is open. */
  private menu = false;
  private sentence: NodeJS.Timeout | undefined;
  /** Where the first key press went: there the second one takes it, though a line may begin. */
  private arrived: { readonly version: number; readonly place: vscode.Position } | null = null;
  /** Where an edit is being taken that others of the same answer follow. */
  private goesOn: vscode.TextEditor | null = null;
  /** Where a mark says that there is something to ask for. */
  private marked: vscode.TextEditor | null = null;
  /** Where the last of several edits was accepted, and nothing happened since. */
  private finished: vscode.TextEditor | null = null;
  private taking = false;
  private readonly takings = new vscode.EventEmitter<vscode.TextEditor>();
  /** An edit was taken, and the next one of the same answer is to be asked for. */
  readonly onGoingOn = this.takings.event;
  private readonly meetings = new vscode.EventEmitter<void>();
  /** An edit is shown while the editor's menu is open. */
  readonly onMenuBeside = this.meetings.event;
  private last = { version: -1, row: -1 };

  constructor(
    private readonly server: Server,
    private readonly painter: Painter,
  ) {}

  /** What is shown in an editor. */
  in(editor: vscode.TextEditor | undefined): Suggestion | null {
    return this.shown !== null && this.shown.editor === editor ? this.shown.suggestion : null;
  }

  /** The name of what is shown. */
  get id(): string | null {
    return this.shown?.suggestion.id ?? null;
  }

  /** Whether a change of a document is an edit that was taken and that others follow. */
  isGoingOn(document: vscode.TextDocument): boolean {
    return this.goesOn?.document === document;
  }

  /** Show an edit in the place of what is shown. */
  show(editor: vscode.TextEditor, suggestion: Suggestion, kind: Kind, more: Partial<Shown> = {}): void {
    const before = this.shown;
    this.finished = null;
    if (this.marked !== null) {
      this.hide();
    }
    if (before !== null && before.suggestion.id !== suggestion.id) {
      this.ignore("replaced");
    } else if (before !== null && before.editor !== editor) {
      this.painter.clear(before.editor);
    }
    const row = editor.selection.active.line;
    this.shown = { suggestion, editor, kind, begun: false, there: null, row, stale: false, ...more };
    this.server.spoke(editor.document.uri);
    this.draw();
    this.tellTab(editor);
    setContext(CONTEXT, true);
  }

  /** Show that there is something for a row, in the place of what is shown. */
  mark(editor: vscode.TextEditor, row: number): void {
    this.hide();
    this.marked = editor;
    this.server.spoke(editor.document.uri);
    this.painter.paint(editor, mark(row));
  }

  /** Say something at the cursor for a moment, until the user goes on. */
  say(editor: vscode.TextEditor, text: string, milliseconds = SAID_MS): void {
    this.hide();
    this.marked = editor;
    const { tabSize } = sceneOf(editor);
    this.painter.paint(editor, sentence(new Lines(editor.document.getText()), editor.selection.active.line, text, tabSize));
    this.sentence = setTimeout(() => {
      this.hide();
    }, milliseconds);
  }

  /** Nothing follows: where edits were counted, say that all are accepted. */
  sayDone(editor: vscode.TextEditor): void {
    if (this.finished === editor) {
      this.finished = null;
      this.say(editor, "done", DONE_MS);
    }
  }

  /** The editor's menu is open, or closed. */
  beside(menu: boolean): void {
    if (this.menu !== menu) {
      this.menu = menu;
      this.draw();
    }
  }

  /** Take it away; the server sees from the text what became of it, or was told. */
  hide(): void {
    clearTimeout(this.sentence);
    if (this.marked !== null) {
      this.painter.clear(this.marked);
      this.marked = null;
    }
    const shown = this.shown;
    if (shown !== null) {
      this.shown = null;
      clearTimeout(this.timer);
      this.painter.clear(shown.editor);
      this.tellTab(shown.editor);
      setContext(CONTEXT, false);
    }
  }

  /** The server has nothing for the text as it is. What is begun stays: taking its first piece asked that question. */
  yield(): void {
    if (this.shown?.begun !== true) {
      this.hide();
    }
  }

  /** Take it away, and tell the server that the user did not decide about it. */
  ignore(reason: string): void {
    const id = this.id;
    this.hide();
    if (id !== null) {
      this.server.tell("ignore", id, reason);
    }
  }

  /** Go along with changes of a document. */
  changed(document: vscode.TextDocument, changes: readonly Change[]): void {
    const shown = this.shown;
    if (!this.taking && this.finished?.document === document) {
      this.finished = null;
    }
    if (this.marked?.document === document) {
      this.hide();
    }
    const own = document === (shown?.there ?? shown?.editor.document);
    if (shown === null || (!own && document !== shown.editor.document)) {
      return;
    }
    const suggestion = own ? shown.suggestion.follow(document.getText(), changes) : shown.suggestion;
    if (suggestion === null) {
      this.hide();
    } else {
      const along = own && suggestion.edit.text !== shown.suggestion.edit.text;
      this.shown = { ...shown, suggestion, stale: shown.stale || !along };
      this.passed = suggestion;
      this.draw();
    }
  }

  /** The cursor moved, or other lines came into view. */
  moved(editor: vscode.TextEditor): void {
    const { version } = editor.document;
    const row = editor.selection.active.line;
    if (row !== this.last.row && this.marked === editor) {
      this.hide();
    }
    if (version === this.last.version && row !== this.last.row) {
      // Whoever goes elsewhere without typing is done with what was typed.
      this.passed = null;
    }
    this.last = { version, row };
    this.tellTab(editor);
    const shown = this.shown;
    if (shown?.editor !== editor) {
      return;
    }
    const { rows, distance } = shown.suggestion;
    const away = shown.there === null ? rowsAway(row, rows) - distance : Math.abs(row - shown.row);
    if (!editor.selection.isEmpty || away > PATIENT_ROWS) {
      this.ignore("moved_away");
    } else {
      this.draw();
    }
  }

  /** Whether Tab indents here, whatever is shown: where a line begins, and while the user types past an edit elsewhere. */
  tabIndents(editor: vscode.TextEditor): boolean {
    const { document, selection } = editor;
    const { line, character } = selection.active;
    const wanted = vscode.workspace.getConfiguration("calomel.editor", document.uri).get<boolean>("tabIndents", true);
    if (!wanted || line >= document.lineCount) {
      return false;
    }
    const { arrived } = this;
    if (this.in(editor) !== null && arrived?.version === document.version && arrived.place.isEqual(selection.active)) {
      return false;
    }
    const before = document.lineAt(line).text.slice(0, character);
    return before.trim() === "" || (this.isPassed(editor) && this.isFar(editor));
  }

  /** Whether a key would take what was shown before the user typed on. */
  isStale(editor: vscode.TextEditor): boolean {
    return this.in(editor) !== null && this.shown?.stale === true && !this.isFar(editor);
  }

  /** Take it; of an edit far away only go there. False: nothing is shown here. */
  async accept(editor: vscode.TextEditor): Promise<boolean> {
    const suggestion = this.in(editor);
    if (suggestion === null) {
      return false;
    }
    this.passed = null;
    const there = this.shown?.there ?? null;
    if (there !== null) {
      await this.visit(there, suggestion);
      return true;
    }
    if (this.isFar(editor)) {
      const place = editor.document.positionAt(suggestion.start);
      this.arrived = { version: editor.document.version, place };
      editor.selection = new vscode.Selection(place, place);
      editor.revealRange(new vscode.Range(place, place), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
      this.draw();
      this.tellTab(editor);
      return true;
    }
    this.hide();
    const { chain } = suggestion;
    const goesOn = chain !== null && chain.index < chain.total;
    this.goesOn = goesOn ? editor : null;
    this.finished = chain !== null && !goesOn ? editor : null;
    this.taking = true;
    const done = await put(editor, suggestion.edits, suggestion.behind);
    this.taking = false;
    this.goesOn = null;
    if (done) {
      this.server.tell("accept", suggestion.id);
    }
    if (done && goesOn) {
      this.takings.fire(editor);
    }
    return true;
  }

  /** Take it with all that follow from the same answer, as one step. False: nothing is shown here. */
  async acceptAll(editor: vscode.TextEditor): Promise<boolean> {
    const suggestion = this.in(editor);
    const rest = suggestion?.chain?.rest ?? [];
    if (suggestion === null || rest.length === 0 || (this.shown?.there ?? null) !== null) {
      return this.accept(editor);
    }
    const { all, behind } = suggestion;
    // Whoever has not gone there stays.
    const place = this.isFar(editor) ? null : behind + growth(rest.filter((each) => each.end <= suggestion.edit.start));
    this.hide();
    if (await put(editor, all, place)) {
      this.server.tell("accept", suggestion.id, "all");
    }
    return true;
  }

  /** Take its first piece. False: nothing is shown here, or it is elsewhere. */
  async acceptPiece(editor: vscode.TextEditor, size: "word" | "line"): Promise<boolean> {
    const shown = this.shown;
    const suggestion = this.in(editor);
    const split = suggestion?.split(size) ?? null;
    if (suggestion === null || shown === null || split === null) {
      return false;
    }
    if (split.rest === null || this.isFar(editor)) {
      return this.accept(editor);
    }
    const { piece, rest, accepted } = split;
    this.hide();
    if (!(await put(editor, [piece], piece.start + piece.text.length))) {
      return true;
    }
    const { item } = suggestion;
    this.server.notify("textDocument/didPartiallyAcceptCompletion", {
      item: { ...item, insertText: item.text },
      acceptedLength: Math.min(accepted, item.text.length - 1),
    });
    if (editor.document.getText() === rest.lines.text) {
      this.show(editor, rest, shown.kind, { begun: true });
    }
    return true;
  }

  /** Reject it: it does not come back before the text around it has changed. */
  dismiss(editor: vscode.TextEditor): boolean {
    const suggestion = this.in(editor);
    if (suggestion !== null) {
      this.hide();
      this.server.tell("reject", suggestion.id);
    }
    return suggestion !== null;
  }

  /** Go to an edit of another document, which shows it from now on. */
  private async visit(document: vscode.TextDocument, suggestion: Suggestion): Promise<void> {
    const holds = (): boolean => !document.isClosed && document.getText() === suggestion.lines.text;
    if (!holds()) {
      this.ignore("stale");
      return;
    }
    this.hide();
    const place = document.positionAt(suggestion.start);
    const column = vscode.window.visibleTextEditors.find((each) => each.document === document)?.viewColumn;
    const options = { selection: new vscode.Range(place, place), ...(column === undefined ? {} : { viewColumn: column }) };
    const editor = await vscode.window.showTextDocument(document, options);
    if (holds()) {
      this.arrived = { version: document.version, place };
      this.show(editor, suggestion, "edit");
    }
  }

  private isPassed(editor: vscode.TextEditor): boolean {
    const suggestion = this.in(editor);
    return suggestion !== null && this.passed?.same(suggestion) === true;
  }

  private isFar(editor: vscode.TextEditor): boolean {
    const suggestion = this.in(editor);
    const elsewhere = (this.shown?.there ?? null) !== null;
    return suggestion !== null && (elsewhere || isFar(editor.selection.active.line, suggestion.rows, viewOf(editor)));
  }

  /** Whether Tab may be the menu's: where the editor does not ask for text, it tells nobody that the menu is open. */
  private isMenuPossible(editor: vscode.TextEditor): boolean {
    const configuration = vscode.workspace.getConfiguration("editor", editor.document);
    return this.menu || !configuration.get<boolean>("inlineSuggest.enabled", true);
  }

  private tellTab(editor: vscode.TextEditor): void {
    const indents = this.tabIndents(editor);
    if (indents !== this.indents) {
      this.indents = indents;
      setContext(INDENTS, indents);
    }
  }

  private draw(): void {
    const shown = this.shown;
    if (shown === null) {
      return;
    }
    const { suggestion, editor, there } = shown;
    const scene = {
      ...sceneOf(editor),
      key: this.tabIndents(editor) || this.isMenuPossible(editor) ? "Alt+L" : "Tab",
      menu: this.menu,
      chain: suggestion.chain,
      passed: this.isPassed(editor),
    };
    const painted =
      there === null
        ? picture(suggestion.lines, suggestion.hunks, scene)
        : announcement(`${posix.basename(there.uri.path)}:${suggestion.rows.first + 1}`, scene);
    this.painter.paint(editor, painted);
    if (this.menu) {
      this.meetings.fire();
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.tellShown();
    }, DRAWN_MS);
  }

  private tellShown(): void {
    const shown = this.shown;
    const view = shown === null ? null : viewOf(shown.editor);
    if (shown?.there !== null || this.told === shown.suggestion.id) {
      return;
    }
    const { first } = shown.suggestion.rows;
    if (view === null || (first >= view.first && first <= view.last)) {
      this.told = shown.suggestion.id;
      const method = shown.kind === "fill" ? "didShowCompletion" : "didShowInlineEdit";
      this.server.notify(`textDocument/${method}`, { item: shown.suggestion.item });
    }
  }
}

function setContext(name: string, value: boolean): void {
  void vscode.commands.executeCommand("setContext", name, value);
}

async function put(editor: vscode.TextEditor, edits: readonly Edit[], behind: number | null): Promise<boolean> {
  const { document } = editor;
  const done = await editor.edit((builder) => {
    for (const { start, end, text } of edits) {
      builder.replace(new vscode.Range(document.positionAt(start), document.positionAt(end)), text);
    }
  });
  if (done && behind !== null) {
    const place = document.positionAt(behind);
    editor.selection = new vscode.Selection(place, place);
    editor.revealRange(editor.selection);
  }
  return done;
}

/** Units that edits add to a text. */
function growth(edits: readonly Edit[]): number {
  return edits.reduce((sum, { start, end, text }) => sum + text.length - (end - start), 0);
}

function viewOf(editor: vscode.TextEditor): View | null {
  const ranges = editor.visibleRanges;
  const first = ranges[0];
  const last = ranges.at(-1);
  if (first === undefined || last === undefined) {
    return null;
  }
  // The last line is often half hidden.
  const bottom = last.end.line;
  const cut = bottom < editor.document.lineCount - 1 && bottom - first.start.line > 2 ? 1 : 0;
  return { first: first.start.line, last: bottom - cut };
}

function sceneOf(editor: vscode.TextEditor): Omit<Scene, "key" | "menu" | "passed" | "chain"> {
  const configuration = vscode.workspace.getConfiguration("calomel.editor", editor.document.uri);
  const { tabSize } = editor.options;
  return {
    cursor: editor.selection.active.line,
    view: viewOf(editor),
    tabSize: typeof tabSize === "number" ? tabSize : 4,
    preview: configuration.get<Scene["preview"]>("preview", "auto"),
    hints: configuration.get<boolean>("hints", true),
  };
}
