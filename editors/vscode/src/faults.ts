// What the user must know: one sentence, once, with what can be done about it.

import * as vscode from "vscode";
import { INSTALL } from "./program";
import type { Server } from "./server";

export class Faults implements vscode.Disposable {
  private readonly said = new Set<string>();
  private readonly listener: vscode.Disposable;

  constructor(private readonly server: Server) {
    this.listener = server.onFault(({ message, absent }) => {
      if (!this.said.has(message)) {
        this.said.add(message);
        void (absent ? this.absent(message) : this.broken(message));
      }
    });
  }

  /** Say everything anew. */
  forget(): void {
    this.said.clear();
  }

  dispose(): void {
    this.listener.dispose();
  }

  private async absent(message: string): Promise<void> {
    const [copy, choose, guide] = ["Copy the command", "Choose the program…", "Guide"];
    const install = `${message} From the folder that holds your copy of Calomel, run: ${INSTALL}`;
    const answer = await vscode.window.showWarningMessage(install, copy, choose, guide);
    if (answer === copy) {
      await vscode.env.clipboard.writeText(INSTALL);
      await vscode.window.showInformationMessage("Copied. Run “Calomel: Restart” once it is done.");
    } else if (answer === choose) {
      await vscode.commands.executeCommand("calomel.choosePath");
    } else if (answer === guide) {
      await vscode.commands.executeCommand("calomel.openGuide");
    }
  }

  private async broken(message: string): Promise<void> {
    const [log, restart] = ["Show log", "Restart"];
    const answer = await vscode.window.showWarningMessage(`Calomel: ${message}`, log, restart);
    if (answer === log) {
      this.server.showOutput();
    } else if (answer === restart) {
      await vscode.commands.executeCommand("calomel.restart");
    }
  }
}
