// The language client, without what would be in the way here.

import type { DynamicFeature, StaticFeature } from "vscode-languageclient/node";
import { LanguageClient } from "vscode-languageclient/node";

// The commands of the server would become commands of VS Code, once for each client that ever ran; its code action is
// for editors that can not show next edits.
const LEFT_OUT = new Set(["workspace/executeCommand", "textDocument/codeAction"]);

export class Client extends LanguageClient {
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    if (!("registrationType" in feature) || !LEFT_OUT.has(feature.registrationType.method)) {
      super.registerFeature(feature);
    }
  }

  /** Faults go to the log: what the user must know is said once, in one place. */
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}
