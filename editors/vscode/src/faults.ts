// What the user must know: one sentence, once, with what can be done about it.

import * as vscode from "vscode";
import type { Fault, Server } from "./server";

const DOWNLOAD = "Install it for this extension only? It needs up to 6 GB of disk, mostly for PyTorch.";
// What the buttons do.
const OTHERWISE = { "Set its path…": "calomel.choosePath", Guide: "calomel.openGuide" };
const REMEDIES: Record<Fault["remedy"], Record<string, string>> = {
  install: { "Install Server": "calomel.install", ...OTHERWISE },
  update: { "Update Server": "calomel.install" },
  choose: OTHERWISE,
  outage: { "Use nano meanwhile": "calomel.useNanoMeanwhile", "Choose a model": "calomel.chooseModel" },
  restart: { "Show log": "calomel.showLog", Restart: "calomel.restart" },
};

export class Faults implements vscode.Disposable {
  private readonly said = new Set<string>();
  private readonly listener: vscode.Disposable;

  constructor(private readonly server: Server) {
    this.listener = server.onFault((fault) => {
      const said = `${fault.outage ?? ""} ${fault.message}`;
      if (!this.said.has(said)) {
        this.said.add(said);
        void this.say(fault);
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

  private async say({ message, remedy }: Fault): Promise<void> {
    const named = `Calomel: ${message}`;
    const text = {
      install: `${message} ${DOWNLOAD}`,
      update: message,
      choose: message,
      restart: named,
      outage: named,
    };
    const answer = await vscode.window.showWarningMessage(text[remedy], ...Object.keys(REMEDIES[remedy]));
    const command = answer === undefined ? undefined : REMEDIES[remedy][answer];
    if (command === "calomel.showLog") {
      this.server.showOutput();
    } else if (command !== undefined) {
      await vscode.commands.executeCommand(command);
    }
  }
}
