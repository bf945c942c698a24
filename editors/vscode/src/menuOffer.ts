// One message offers that the editor holds its menu back.

import * as vscode from "vscode";
import { canHoldBack, heldBack } from "./menu";

const SETTING = "quickSuggestions";
const OFFERED = "calomel.menuOffered";
const [YES, NO] = ["Hold It Back", "Leave It"];

/** Offer once, where a menu opens beside a suggestion, that the editor holds it back. */
export async function offerToHoldBack(memory: vscode.Memento): Promise<void> {
  const configuration = vscode.workspace.getConfiguration("editor");
  const wanted = canHoldBack(vscode.version) ? heldBack(configuration.get(SETTING)) : null;
  if (wanted === null || memory.get<boolean>(OFFERED, false)) {
    return;
  }
  await memory.update(OFFERED, true);
  const message = "VS Code can keep its completion menu closed while Calomel has a suggestion, so that Tab accepts that.";
  if ((await vscode.window.showInformationMessage(message, YES, NO)) === YES) {
    await configuration.update(SETTING, wanted, vscode.ConfigurationTarget.Global);
  }
}
