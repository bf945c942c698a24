// Ghost text that the editor shows: what of it is left while the user types along.

import type { Change } from "./edit";

const WITHOUT_BLANKS = /^\s*[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;

/** The first word of a text whose script puts no blanks between words, which the editor would take whole; else null. */
export function firstUnspaced(text: string): string | null {
  if (!WITHOUT_BLANKS.test(text)) {
    return null;
  }
  const blanks = text.length - text.trimStart().length;
  const [word] = new Intl.Segmenter(undefined, { granularity: "word" }).segment(text.slice(blanks));
  return text.slice(0, blanks) + (word?.segment ?? "");
}

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
