// Calomel in VS Code: ghost text and next edits from `calomel lsp`.

import * as vscode from "vscode";
import { registerCommands } from "./commands";
import { Faults } from "./faults";
import { Inline } from "./inline";
import { Installer } from "./installer";
import { Latency } from "./latency";
import { offerToHoldBack } from "./menuOffer";
import { Pages } from "./page";
import { Painter } from "./painter";
import { Preview } from "./preview";
import { Server } from "./server";
import { StatusBar } from "./statusBar";
import { Surplus } from "./surplus";
import { Watch } from "./watch";

let server: Server | null = null;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const inline = new Inline();
  const started = new Server(context, inline.middleware);
  server = started;
  const painter = new Painter(vscode.Uri.joinPath(context.extensionUri, "media"));
  const preview = new Preview(started, painter);
  const watch = new Watch(started, inline, preview);
  const latency = new Latency();
  const faults = new Faults(started);
  const installer = new Installer(started);
  const pages = new Pages();
  const surplus = new Surplus();
  inline.connect(
    started,
    (asked) => watch.otherwise(asked),
    () => {
      preview.ignore("replaced");
    },
    (document, row) => {
      const editor = vscode.window.activeTextEditor;
      if (editor?.document === document) {
        preview.mark(editor, row);
      }
    },
  );
  let model = "";
  const another = started.onChange(() => {
    const { state, message } = started.state;
    if (state === "ready" && message !== model) {
      model = message;
      latency.clear();
    }
  });
  // It is told after the figures of the model before are forgotten.
  const statusBar = new StatusBar(started, latency);
  context.subscriptions.push(
    inline,
    started,
    painter,
    watch,
    faults,
    installer,
    pages,
    surplus,
    another,
    statusBar,
    inline.onMenu((isOpen) => {
      preview.beside(isOpen);
    }),
    preview.onMenuBeside(() => {
      void offerToHoldBack(context.globalState);
    }),
    inline.onAnswer((milliseconds) => {
      latency.add(milliseconds);
      statusBar.update();
    }),
    ...registerCommands({ server: started, inline, preview, watch, pages, faults, installer, surplus }),
    ...followSettings(started, watch),
  );
  await started.start();
}

export async function deactivate(): Promise<void> {
  await server?.stop();
  server = null;
}

/** What the user changes outside of the editors. */
function followSettings(started: Server, watch: Watch): vscode.Disposable[] {
  const again = (): void => {
    if (started.state.state === "absent") {
      void started.restart();
    }
  };
  return [
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("calomel.path")) {
        void started.restart();
      } else if (event.affectsConfiguration("calomel.editor")) {
        watch.hide("settings");
      } else if (event.affectsConfiguration("calomel")) {
        started.configurationChanged();
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(again),
    vscode.workspace.onDidChangeWorkspaceFolders(again),
  ];
}
