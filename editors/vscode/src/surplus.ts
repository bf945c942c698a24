// One Tab too many: whoever presses it until nothing is left to take wants no blanks from the last one.

import * as vscode from "vscode";

/** True while a Tab that has nothing to take does nothing. */
const CONTEXT = "calomel.took";
const SURPLUS_MS = 400;

export class Surplus implements vscode.Disposable {
  private timer: NodeJS.Timeout | null = null;
  private readonly listener = vscode.window.onDidChangeTextEditorSelection(({ kind }) => {
    const { Keyboard, Mouse } = vscode.TextEditorSelectionChangeKind;
    if (kind === Keyboard || kind === Mouse) {
      this.end();
    }
  });

  /** Whether a Tab now follows so closely on one that took something that it was pressed for the same. */
  get isDue(): boolean {
    return this.timer !== null;
  }

  /** Tab takes something, or goes to it. */
  begin(): void {
    clearTimeout(this.timer ?? undefined);
    this.timer = setTimeout(() => {
      this.end();
    }, SURPLUS_MS);
    void vscode.commands.executeCommand("setContext", CONTEXT, true);
  }

  dispose(): void {
    this.end();
    this.listener.dispose();
  }

  private end(): void {
    if (this.timer !== null) {
      clearTimeout(this.timer);
      this.timer = null;
      void vscode.commands.executeCommand("setContext", CONTEXT, false);
    }
  }
}
