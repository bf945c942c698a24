// The item in the status bar.

import * as vscode from "vscode";
import type { Latency } from "./latency";
import type { Server } from "./server";
import { statusItem } from "./state";

export class StatusBar implements vscode.Disposable {
  private readonly item: vscode.StatusBarItem;
  private readonly listeners: vscode.Disposable[];

  constructor(
    private readonly server: Server,
    private readonly latency: Latency,
  ) {
    this.item = vscode.window.createStatusBarItem("calomel.status", vscode.StatusBarAlignment.Right, 90);
    this.item.name = "Calomel";
    this.item.command = "calomel.showMenu";
    this.listeners = [
      server.onChange(() => {
        this.update();
      }),
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.update();
      }),
    ];
    this.update();
    this.item.show();
  }

  /** Say how it is now. */
  update(): void {
    const silences = this.server.silences(vscode.window.activeTextEditor?.document.uri);
    const shown = statusItem(this.server.state, silences, this.latency.median, this.latency.isSlow);
    this.item.text = shown.text;
    this.item.tooltip = shown.tooltip;
    this.item.accessibilityInformation = { label: `Calomel. ${shown.tooltip}` };
    this.item.backgroundColor =
      shown.level === "normal" ? undefined : new vscode.ThemeColor(`statusBarItem.${shown.level}Background`);
  }

  dispose(): void {
    this.item.dispose();
    for (const listener of this.listeners) {
      listener.dispose();
    }
  }
}
