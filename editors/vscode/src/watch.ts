// When to ask for the next edit: with the editor's own questions, behind changes that no such question follows, and when
// the cursor goes elsewhere soon after an edit, or to a problem.

import * as vscode from "vscode";
import { isCancelled } from "./cancelled";
import type { Change } from "./edit";
import type { Asked, Inline, Made } from "./inline";
import type { Preview } from "./preview";
import type { NextEdit, Server } from "./server";
import { whySilent } from "./state";
import { Suggestion } from "./suggestion";

// A cursor that moves tells of a next edit only for so long after an edit; the server's rule for ghost text.
const AFTER_EDIT_MS = 10_000;
// The editor asks for ghost text within this time after a key; that question comes first.
const TYPED_MS = 150;
// Moving through a file is no question.
const MOVE_MS = 100;

/** True while the server is being asked and the cursor stands where nobody types a tab. */
const AWAITS = "calomel.awaits";
const AWAITS_MS = 1500;

export class Watch implements vscode.Disposable {
  private timer: NodeJS.Timeout | undefined;
  private asking: vscode.CancellationTokenSource | null = null;
  private edited = Number.NEGATIVE_INFINITY;
  private row = -1;
  private runs = false;
  private awaits: NodeJS.Timeout | null = null;
  private readonly listeners: vscode.Disposable[];

  constructor(
    private readonly server: Server,
    private readonly inline: Inline,
    private readonly preview: Preview,
  ) {
    const { window, workspace } = vscode;
    this.listeners = [
      workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        const changes = contentChanges.map(({ rangeOffset, rangeLength, text }) => ({
          start: rangeOffset,
          removed: rangeLength,
          text,
        }));
        if (changes.length > 0) {
          this.changed(document, changes);
        }
      }),
      window.onDidChangeTextEditorSelection(({ textEditor }) => {
        this.moved(textEditor);
      }),
      preview.onGoingOn((editor) => {
        void this.ask(editor, false);
      }),
      server.onCount((uri) => {
        this.counted(uri);
      }),
      server.onExtended((extended) => {
        void this.inline.extend(extended);
      }),
      window.onDidChangeTextEditorVisibleRanges(({ textEditor }) => {
        this.preview.moved(textEditor);
      }),
      window.onDidChangeActiveTextEditor((editor) => {
        this.entered(editor);
      }),
      server.onChange(() => {
        const runs = server.isRunning;
        if (runs && !this.runs) {
          this.focused(window.activeTextEditor);
        }
        this.runs = runs;
      }),
    ];
  }

  /** Ask for the next edit, for a question of the editor that the server had no text for. */
  async otherwise({ document, position, invoked, token }: Asked): Promise<Made | null> {
    this.cancel();
    const editor = vscode.window.activeTextEditor;
    if (editor?.document !== document || !this.server.serves(document)) {
      if (editor?.document === document && invoked) {
        this.preview.say(editor, this.server.state.message);
      }
      return null;
    }
    const found = await this.server.nextEdit(document, position, invoked, token);
    if (isCancelled(token) || !isAt(editor, position)) {
      return null;
    }
    this.awaited(false);
    const made = this.asItem(document, position, found);
    if (made !== null) {
      this.preview.hide();
      return made;
    }
    this.present(editor, found, invoked);
    return null;
  }

  /** Ask now, whatever came before. */
  async ask(editor: vscode.TextEditor, invoked: boolean): Promise<void> {
    this.cancel();
    this.inline.cancel();
    const { document, selection } = editor;
    if (!this.server.serves(document) || editor.selections.length > 1 || !selection.isEmpty) {
      return;
    }
    const asking = new vscode.CancellationTokenSource();
    this.asking = asking;
    const position = selection.active;
    const found = await this.server.nextEdit(document, position, invoked, asking.token);
    if (isCancelled(asking.token)) {
      return;
    }
    this.asking = null;
    asking.dispose();
    if (!isAt(editor, position)) {
      return;
    }
    this.awaited(false);
    const shows = vscode.workspace.getConfiguration("editor", document).get<boolean>("inlineSuggest.enabled", true);
    const made = shows ? this.asItem(document, position, found) : null;
    if (made !== null) {
      this.preview.hide();
      await this.inline.push(document, position, [made]);
    } else {
      this.present(editor, found, invoked);
    }
  }

  /** Ask nothing, and let no answer come. */
  cancel(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.asking?.cancel();
    this.asking?.dispose();
    this.asking = null;
  }

  /** Take away whatever is shown. */
  hide(reason: string): void {
    this.cancel();
    this.inline.cancel();
    this.preview.ignore(reason);
    this.inline.ignore(reason);
  }

  dispose(): void {
    this.cancel();
    clearTimeout(this.awaits ?? undefined);
    for (const listener of this.listeners) {
      listener.dispose();
    }
  }

  private asItem(
    document: vscode.TextDocument,
    position: vscode.Position,
    found: NextEdit | null,
  ): Made | null {
    if (found?.document !== document) {
      return null;
    }
    const { item } = found;
    const suggestion = Suggestion.of(item, document.getText(), position.line);
    // Ghost text has no room for what is said of several, and would leave the cursor within a name.
    return suggestion?.chain === null && !suggestion.isPartial && item.hint !== true
      ? this.inline.item(document, position, suggestion.edit, { id: suggestion.id, kind: "edit", item })
      : null;
  }

  private present(editor: vscode.TextEditor, found: NextEdit | null, invoked: boolean): void {
    const here = found?.document === editor.document;
    const row = here || found === null ? editor.selection.active.line : found.item.range.start.line;
    const suggestion = found === null ? null : Suggestion.of(found.item, found.document.getText(), row);
    if (suggestion === null || found === null) {
      this.preview.yield();
      const why = whySilent(this.server.silences(editor.document.uri));
      if (this.preview.in(editor) === null && invoked && why !== "") {
        this.preview.say(editor, why);
      } else if (this.preview.in(editor) === null) {
        this.preview.sayDone(editor);
      }
    } else if (found.item.hint === true) {
      this.preview.mark(editor, here ? suggestion.rows.first : row);
    } else {
      this.inline.ignore("replaced");
      this.preview.show(editor, suggestion, "edit", here ? {} : { there: found.document });
    }
  }

  private changed(document: vscode.TextDocument, changes: readonly Change[]): void {
    this.preview.changed(document, changes);
    this.inline.changed(document, changes);
    const editor = vscode.window.activeTextEditor;
    if (this.preview.isGoingOn(document)) {
      this.inline.leave(document);
    }
    if (editor?.document === document) {
      this.edited = Date.now();
      const [change, ...others] = changes;
      const behind = change === undefined || others.length > 0 ? null : change.start + change.text.length;
      this.awaited(behind !== null && isAmid(document, behind));
      this.askSoon(editor, TYPED_MS);
    }
  }

  private moved(editor: vscode.TextEditor): void {
    this.preview.moved(editor);
    const away = this.inline.moved(editor);
    if (this.awaits !== null && !isAmid(editor.document, editor.document.offsetAt(editor.selection.active))) {
      this.awaited(false);
    }
    const row = editor.selection.active.line;
    const elsewhere = row !== this.row;
    this.row = row;
    const busy = this.timer !== undefined || this.preview.in(editor) !== null || this.inline.id !== null;
    const recently = elsewhere && Date.now() - this.edited < AFTER_EDIT_MS;
    if (away || (!busy && (recently || isAtProblem(editor)))) {
      this.askSoon(editor, MOVE_MS);
    } else if (elsewhere && editor === vscode.window.activeTextEditor) {
      this.focused(editor);
    }
  }

  /** Tell where the cursor is: the model reads what stands there once it rests. */
  private focused(editor: vscode.TextEditor | undefined): void {
    const document = editor?.document;
    const served = document !== undefined && this.server.serves(document);
    const place = { textDocument: { uri: document?.uri.toString() }, position: editor?.selection.active };
    this.server.notify("textDocument/didFocus", served ? place : {});
  }

  private awaited(now: boolean): void {
    if (now !== (this.awaits !== null)) {
      void vscode.commands.executeCommand("setContext", AWAITS, now);
    }
    clearTimeout(this.awaits ?? undefined);
    this.awaits = now
      ? setTimeout(() => {
          this.awaited(false);
        }, AWAITS_MS)
      : null;
  }

  private askSoon(editor: vscode.TextEditor, delay: number): void {
    this.cancel();
    const typed = delay === TYPED_MS;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      const answered = typed && this.inline.wasAsked(editor.document);
      if (vscode.window.activeTextEditor === editor && !answered) {
        void this.ask(editor, false);
      }
    }, delay);
  }

  /** The server knows how many edits there are beside the one that is shown: ask for that number. */
  private counted(uri: vscode.Uri): void {
    const editor = vscode.window.activeTextEditor;
    const shown = this.preview.in(editor);
    const same = editor?.document.uri.toString() === uri.toString() && this.timer === undefined && this.asking === null;
    if (editor !== undefined && same && shown?.chain === null && !this.preview.isStale(editor)) {
      void this.ask(editor, false);
    }
  }

  private entered(editor: vscode.TextEditor | undefined): void {
    this.cancel();
    this.inline.cancel();
    this.row = editor?.selection.active.line ?? -1;
    if (this.preview.in(editor) === null) {
      this.preview.ignore("left_buffer");
    }
    this.inline.ignore("left_buffer");
    this.focused(editor);
  }
}

/** Whether a place lies between two characters that are no white space. */
function isAmid(document: vscode.TextDocument, offset: number): boolean {
  const place = document.positionAt(offset);
  const { text } = document.lineAt(place.line);
  return /\S/.test(text.charAt(place.character - 1)) && /\S/.test(text.charAt(place.character));
}

/** Whether the editor shows a problem where the cursor is: whoever goes there is offered what solves it. */
function isAtProblem({ document, selection }: vscode.TextEditor): boolean {
  const problems = vscode.languages.getDiagnostics(document.uri);
  return selection.isEmpty && problems.some(({ range }) => range.contains(selection.active));
}

function isAt(editor: vscode.TextEditor, position: vscode.Position): boolean {
  const { selection } = editor;
  return vscode.window.activeTextEditor === editor && selection.isEmpty && selection.active.isEqual(position);
}
