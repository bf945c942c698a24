// What the status bar says.

export interface ServerState {
  readonly state: "absent" | "starting" | "loading" | "ready" | "off" | "error";
  readonly message: string;
  /** Which time of the session it is that the model's server stopped answering. */
  readonly outage?: number;
}

export interface Silence {
  readonly kind: "fill" | "edit";
  readonly reason: string;
  readonly message: string;
}

export interface Shown {
  readonly text: string;
  readonly tooltip: string;
  readonly level: "normal" | "warning" | "error";
}

// Reasons that hold until the user does something about them; any other passes with the next key.
const LASTING = new Set([
  "off_globally",
  "off_language",
  "off_file",
  "snoozed",
  "ignored_path",
  "unknown_document",
]);
// Of these, those that the user may not have asked for.
const UNASKED = new Set(["ignored_path", "off_language"]);
const SLOW = new Set(["timeout", "overloaded"]);
// Over as soon as the server is ready, which its own state says; and what is said with it.
const AWAY: Readonly<Record<string, string>> = { no_model: "the model is away.", loading: "the model is loading." };

/** Whether nothing comes in this file however much is typed. */
export function isOffHere(silences: readonly Silence[]): boolean {
  return silences.some(({ reason }) => LASTING.has(reason));
}

/** Whether it lasts, and the user may not know of it. */
export function isUnasked(reason: string): boolean {
  return UNASKED.has(reason);
}

/**
 * Why nothing is shown, in words; empty where nothing is known. Text and edits are often silent for the same reason.
 * `brief`: the state of the server is said, too.
 */
export function whySilent(silences: readonly Silence[], brief = false): string {
  const [first, second] = silences;
  if (first === undefined) {
    return "";
  }
  const one = second === undefined || second.message === first.message;
  return one || silences.every(({ reason }) => reason in AWAY)
    ? `Nothing shown: ${(brief ? AWAY[first.reason] : undefined) ?? first.message}`
    : silences.map(({ kind, message }) => `${kind === "fill" ? "No completion" : "No next edit"}: ${message}`).join(" ");
}

/** The item in the status bar, for the server's state and why nothing was shown last in this file. */
export function statusItem(
  server: ServerState,
  silences: readonly Silence[],
  median: number | null,
  slow: boolean,
): Shown {
  const known = server.state === "ready" ? silences.filter(({ reason }) => !(reason in AWAY)) : silences;
  const why = known.length === 0 ? "" : `\n\n${whySilent(known, true)}`;
  const took = median === null ? "" : `\n\nAnswers take ${Math.round(median)} ms.`;
  const tooltip = `${server.message}${why}${took}`;
  switch (server.state) {
    case "absent":
    case "error":
      return { text: "$(error) Calomel", tooltip, level: "error" };
    case "starting":
    case "loading":
      return { text: "$(loading~spin) Calomel: loading", tooltip, level: "normal" };
    case "off":
      return { text: "$(circle-slash) Calomel: off", tooltip, level: "normal" };
    case "ready":
      if (isOffHere(silences)) {
        return { text: "$(circle-slash) Calomel: off here", tooltip, level: "normal" };
      }
      return slow || silences.some(({ reason }) => SLOW.has(reason))
        ? { text: "$(warning) Calomel: slow", tooltip, level: "warning" }
        : { text: "$(sparkle) Calomel", tooltip, level: "normal" };
  }
}
