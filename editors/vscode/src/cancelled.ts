import type { CancellationToken } from "vscode";

/** Whether nobody waits any more; a call, since the answer changes while one waits. */
export function isCancelled(token: CancellationToken): boolean {
  return token.isCancellationRequested;
}

/** Null as soon as nobody waits any more. */
export async function cancellation(token: CancellationToken): Promise<null> {
  return new Promise((done) => {
    if (isCancelled(token)) {
      done(null);
    }
    token.onCancellationRequested(() => {
      done(null);
    });
  });
}
