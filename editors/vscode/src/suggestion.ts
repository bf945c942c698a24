// A next edit that is on the screen: what it would change, and how it goes along with what is typed.

import type { Change, Edit } from "./edit";
import { applied, isIdle, rebased, trimmed, withLineEnds } from "./edit";
import type { Hunk } from "./hunk";
import { editsOf, hunks, pieceOf, rowsOf } from "./hunk";
import { Lines } from "./lines";
import type { View } from "./placement";
import { rowsAway } from "./placement";

interface TextEdit {
  readonly text: string;
  readonly range: {
    readonly start: { readonly line: number; readonly character: number };
    readonly end: { readonly line: number; readonly character: number };
  };
}

/** An edit as the server sends it. */
export interface EditItem extends TextEdit {
  readonly textDocument?: { readonly uri: string; readonly version?: number | null };
  readonly command?: { readonly command: string; readonly arguments?: readonly unknown[] };
  /** The user is to see no more than a mark until they ask. */
  readonly hint?: boolean;
  /** Where it is among those of one answer, and those that follow. */
  readonly chain?: { readonly index: number; readonly total: number; readonly rest: readonly TextEdit[] };
}

/** Where an edit is among those of one answer, counted from 1, and those that follow. */
export interface Chain {
  readonly index: number;
  readonly total: number;
  readonly rest: readonly Edit[];
}

/** The name of a suggestion, as its command carries it. */
export function idOf(command: { readonly arguments?: readonly unknown[] | undefined } | undefined): string | null {
  const first = command?.arguments?.[0];
  return typeof first === "string" && first !== "" ? first : null;
}

export class Suggestion {
  private constructor(
    readonly id: string,
    readonly item: EditItem,
    readonly lines: Lines,
    readonly edit: Edit,
    /** Where the text ends that is accepted, unchanged text behind the edit included: the rest of a name. */
    private readonly end: number,
    readonly hunks: readonly Hunk[],
    /** Rows from the cursor when it was shown first. */
    readonly distance: number,
    /** Null where the answer has no other edit. */
    readonly chain: Chain | null,
  ) {}

  /** From an answer of the server to a question about this text; null where it changes nothing or has no name. */
  static of(item: EditItem, text: string, cursorRow: number): Suggestion | null {
    const id = idOf(item.command);
    if (id === null) {
      return null;
    }
    const lines = new Lines(text);
    const edit = placed(lines, item);
    const changes = hunks(lines, edit);
    if (isIdle(text, edit) || changes.length === 0) {
      return null;
    }
    const away = rowsAway(cursorRow, rowsOf(changes, lines.rows.length - 1));
    const { index, total, rest } = item.chain ?? { index: 1, total: 1, rest: [] };
    const chain = total > 1 ? { index, total, rest: rest.map((each) => placed(lines, each)) } : null;
    return new Suggestion(id, item, lines, edit, lines.offset(columnOf(item.range.end)), changes, away, chain);
  }

  /** Whether it ends within a name, the rest of which stays. */
  get isPartial(): boolean {
    return this.end > this.edit.end;
  }

  /** The rows that it changes or stands at. */
  get rows(): View {
    return rowsOf(this.hunks, this.lines.rows.length - 1);
  }

  /** Where the first change begins. */
  get start(): number {
    const hunk = this.hunks[0];
    const row = Math.min(hunk?.row ?? 0, this.lines.rows.length - 1);
    return this.lines.offset({ line: row, column: hunk?.parts[0]?.start ?? 0 });
  }

  /** What is put into the text when it is taken: unchanged lines between changes stay as they are. */
  get edits(): readonly Edit[] {
    return editsOf(this.lines, this.edit, this.hunks);
  }

  /** The same with all that follow. */
  get all(): readonly Edit[] {
    const rest = this.chain?.rest ?? [];
    return [...this.edits, ...rest.flatMap((each) => editsOf(this.lines, each, hunks(this.lines, each)))];
  }

  /** Where the cursor belongs once it was taken: behind what it put in and the rest of a name, as an offset afterwards. */
  get behind(): number {
    const { start, end, text } = this.edit;
    return this.end + text.length - (end - start);
  }

  /** As it is after the document has changed; null where it no longer holds. */
  follow(text: string, changes: readonly Change[]): Suggestion | null {
    let edit: Edit | null = this.edit;
    // An editor tells of several changes from the end of the text to its beginning.
    for (const change of changes) {
      edit = edit === null ? null : rebased(edit, change);
    }
    if (edit === null || text.slice(edit.start, edit.end) !== this.removed) {
      return null;
    }
    const rest = this.lines.text.slice(this.edit.end, this.end);
    return this.with(text, edit, text.startsWith(rest, edit.end) ? edit.end + rest.length : edit.end);
  }

  /** Its first piece, and what is left of it afterwards (null: nothing). */
  split(size: "word" | "line"): { piece: Edit; rest: Suggestion | null; accepted: number } | null {
    const hunk = this.hunks[0];
    if (hunk === undefined) {
      return null;
    }
    const piece = pieceOf(this.lines, hunk, size === "line");
    const { text } = this.lines;
    const after = applied(text, piece);
    const target = applied(text, this.edit);
    // The rest lies between what both texts share.
    const left = trimmed(after, { start: 0, end: after.length, text: target });
    const end = after.length - (text.length - this.end);
    const rest = after === target ? null : this.with(after, left, Math.max(end, left.end));
    const start = this.lines.offset({ line: this.item.range.start.line, column: this.item.range.start.character });
    const accepted = Math.max(1, piece.start + piece.text.length - Math.min(start, piece.start));
    return { piece, rest, accepted };
  }

  /** Whether both do the same, wherever. */
  same(other: Suggestion): boolean {
    return this.edit.text === other.edit.text && this.removed === other.removed;
  }

  private get removed(): string {
    return this.lines.text.slice(this.edit.start, this.edit.end);
  }

  private with(text: string, edit: Edit, end: number): Suggestion | null {
    const lines = new Lines(text);
    const changes = hunks(lines, edit);
    // What follows is as old as the text before: the server tells it anew.
    const chain = this.chain === null ? null : { ...this.chain, rest: [] };
    return changes.length === 0
      ? null
      : new Suggestion(this.id, this.item, lines, edit, end, changes, this.distance, chain);
  }
}

function columnOf({ line, character }: { line: number; character: number }): { line: number; column: number } {
  return { line, column: character };
}

function placed(lines: Lines, { range: { start, end }, text }: TextEdit): Edit {
  return trimmed(lines.text, {
    start: lines.offset(columnOf(start)),
    end: lines.offset(columnOf(end)),
    text: withLineEnds(text, lines.text.includes("\r\n") ? "\r\n" : "\n"),
  });
}
