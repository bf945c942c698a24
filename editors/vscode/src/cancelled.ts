import type { CancellationToken } from "vscode";

/** Whether nobody waits any more; a call, since the answer changes while one waits. */
export function isCancelled(token: CancellationToken): boolean {
  return token.isCancellationRequested;
}
