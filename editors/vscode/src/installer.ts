// “Calomel: Install Server”: its progress, its cancellation, and what is said at the end. Only a click runs it.

import { homedir } from "node:os";
import * as vscode from "vscode";
import { isCancelled } from "./cancelled";
import { findTool, install, installed } from "./install";
import { startedInstead } from "./program";
import type { Server } from "./server";

const NO_TOOL =
  "Neither uv nor a Python from 3.11 to 3.13 with its venv module was found. Install one of them " +
  "(on Debian or Ubuntu: sudo apt install python3 python3-venv), then install the server again.";
const READ_MS = 10_000;
// More does not fit into the notification.
const SHOWN = 80;

export class Installer implements vscode.Disposable {
  private running = false;
  private readonly stopping = new AbortController();

  constructor(private readonly server: Server) {}

  /** Install the server, and start it. Never rejects. */
  async install(): Promise<void> {
    if (this.running) {
      return;
    }
    this.running = true;
    const { Notification } = vscode.ProgressLocation;
    const options = { location: Notification, title: "Calomel: installing the server", cancellable: true };
    const problem = await vscode.window.withProgress(options, async (progress, token) => {
      try {
        await this.work(progress, token);
        return null;
      } catch (error) {
        return isCancelled(token) ? "" : error instanceof Error ? error.message : String(error);
      }
    });
    this.running = false;
    if (problem === null) {
      await this.begin();
    } else if (problem === "") {
      vscode.window.setStatusBarMessage("Calomel: installation cancelled", READ_MS);
    } else {
      await this.fail(problem);
    }
  }

  /** The editor ends, and so does what it installs. */
  dispose(): void {
    this.stopping.abort();
  }

  private async work(progress: vscode.Progress<{ message: string }>, token: vscode.CancellationToken): Promise<void> {
    const wanted = this.server.source();
    if (wanted.version === null) {
      throw new Error(wanted.problem);
    }
    const tool = findTool(process.env["PATH"] ?? "", homedir());
    if (tool === null) {
      throw new Error(NO_TOOL);
    }
    const cancel = new AbortController();
    token.onCancellationRequested(() => {
      cancel.abort();
    });
    const tell = (line: string): void => {
      this.server.output.info(line);
      progress.report({ message: line.trim().slice(0, SHOWN) });
    };
    await install(this.server.storage, wanted, tool, tell, AbortSignal.any([cancel.signal, this.stopping.signal]));
  }

  private async begin(): Promise<void> {
    const [found, own] = [this.server.find(), installed(this.server.storage)];
    await this.server.restart();
    if (own !== null && found.program === own.program) {
      vscode.window.setStatusBarMessage(`Calomel: version ${own.version} of the server is installed`, READ_MS);
    } else {
      await vscode.window.showInformationMessage(`Calomel: the server is installed, but ${startedInstead(found)}`);
    }
  }

  private async fail(problem: string): Promise<void> {
    this.server.output.error(problem);
    const [again, log] = ["Try again", "Show log"];
    const answer = await vscode.window.showErrorMessage(`Calomel: ${problem}`, again, log);
    if (answer === again) {
      await this.install();
    } else if (answer === log) {
      this.server.showOutput();
    }
  }
}
