// Choosing the model that answers: what is here, and moving to it.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import * as vscode from "vscode";
import type { Pages } from "./page";
import type { Server } from "./server";
import { earlierKey } from "./settings";

const RECOMMEND_MS = 120_000;

/** The settings of the section `backend` that name a model; null takes one back. */
type Choice = Readonly<Record<string, string | null>>;

interface Model {
  readonly label: string;
  readonly detail: string;
  readonly settings: Choice;
  readonly current: boolean;
}

interface Answer {
  readonly message: string;
  /** Absent where the model does not answer. */
  readonly settings?: Choice;
}

type Item = vscode.QuickPickItem & { readonly run?: () => Promise<Choice | null> };

/** Show which models there are, and move to the one that the user picks. */
export async function chooseModel(server: Server, pages: Pages): Promise<void> {
  const item = await vscode.window.showQuickPick<Item>(items(server, pages), {
    title: "Calomel: Choose a Model",
    placeHolder: "Which model should answer?",
    matchOnDescription: true,
  });
  const choice = (await item?.run?.()) ?? null;
  if (item !== undefined && choice !== null) {
    await use(server, item.run === address ? String(choice["upstream"]) : item.label, choice);
  }
}

async function items(server: Server, pages: Pages): Promise<Item[]> {
  const { models } = await server.execute<{ models: readonly Model[] }>("models");
  return [
    ...models.map(({ label, detail, settings, current }) => ({
      label: current ? `$(check) ${label}` : label,
      description: detail,
      run: () => Promise.resolve(current ? null : settings),
    })),
    { label: "", kind: vscode.QuickPickItemKind.Separator },
    { label: "$(link) A server at another address", run: address },
    { label: "$(list-unordered) Show larger models for this machine", run: () => recommend(server, pages) },
  ];
}

async function address(): Promise<Choice | null> {
  const url = await vscode.window.showInputBox({
    title: "Address of a llama.cpp, Ollama, vLLM or LM Studio server",
    value: "localhost:8080",
  });
  return url === undefined || url.trim() === "" ? null : { upstream: url.trim() };
}

async function recommend(server: Server, pages: Pages): Promise<null> {
  const { stdout } = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Window, title: "Calomel: looking for models that fit this machine" },
    () => promisify(execFile)(server.program(), ["models", "recommend"], { timeout: RECOMMEND_MS }),
  );
  await pages.open("Larger models.txt", stdout, "plaintext");
  return null;
}

async function use(server: Server, label: string, choice: Choice): Promise<void> {
  const answer = await vscode.window.withProgress(
    {
      location: vscode.ProgressLocation.Notification,
      title: `Calomel is asking ${label}. Until it answers, nothing changes.`,
      cancellable: true,
    },
    async (_, token) => {
      try {
        return await server.asked<Answer>(token, "useModel", choice);
      } catch (error) {
        if (token.isCancellationRequested) {
          return null;
        }
        throw error;
      }
    },
  );
  if (answer === null) {
    return;
  }
  const { settings, message } = answer;
  if (settings === undefined) {
    throw new Error(message);
  }
  await server.withoutSettings(() => write(settings));
  vscode.window.setStatusBarMessage(`Calomel: ${message}`, 8000);
}

/** Have `nano` answer until the server that is away is back: a setting would outlast that. */
export async function useNanoMeanwhile(server: Server): Promise<void> {
  const { message } = await server.execute<Answer>("useModel", { model: "nano", meanwhile: true });
  vscode.window.setStatusBarMessage(`Calomel: ${message}`, 8000);
}

/** What is taken back first: two models at once would be none. */
async function write(settings: Choice): Promise<void> {
  const configuration = vscode.workspace.getConfiguration("calomel");
  const all = Object.entries(settings).sort(([, a], [, b]) => Number(a !== null) - Number(b !== null));
  for (const [name, value] of all) {
    const key = `backend.${name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())}`;
    const earlier = earlierKey(key);
    if (configuration.inspect(earlier)?.globalValue !== undefined) {
      await configuration.update(earlier, undefined, vscode.ConfigurationTarget.Global);
    }
    if ((configuration.inspect(key)?.globalValue ?? null) !== value) {
      await configuration.update(key, value ?? undefined, vscode.ConfigurationTarget.Global);
    }
  }
}
