// Ghost text that the editor shows: what of it is left while the user types along.

import type { Change } from "./edit";

export interface GhostItem {
  readonly id: string;
  readonly kind: "fill" | "edit";
  /** As the server sent it, to tell of it. */
  readonly item: unknown;
}

export class Ghost {
  constructor(
    readonly item: GhostItem,
    /** Of the cursor. */
    readonly offset: number,
    /** What is left to insert at the cursor. */
    readonly rest: string,
    /** Units of the item's text that stand before it. */
    readonly lead: number,
  ) {}

  /** After a change of the document; null where it does not agree, "taken" where nothing is left. */
  follow(changes: readonly Change[]): Ghost | "taken" | null {
    const change = changes[0];
    if (changes.length !== 1 || change === undefined) {
      return null;
    }
    const same = change.removed === 0 && change.start === this.offset;
    if (!same || !this.rest.startsWith(change.text)) {
      return null;
    }
    const length = change.text.length;
    return length === this.rest.length
      ? "taken"
      : new Ghost(this.item, this.offset + length, this.rest.slice(length), this.lead + length);
  }
}
