// Where an edit is shown: as ghost text, which the editor draws and takes itself, or as a preview of our own.

import type { Edit } from "./edit";
import { slid } from "./edit";
import type { Lines } from "./lines";

/** Rows between the cursor and an edit from which on the first key press only goes there. */
export const JUMP_ROWS = 2;
// Further away the same text is the same by chance.
const SLIDE = 2000;

/** Rows that can be seen, the last one included. */
export interface View {
  readonly first: number;
  readonly last: number;
}

/**
 * The edit as the editor's own ghost text can show it, from the cursor on; null where it cannot. It shows what only
 * inserts, at the cursor or behind it in its line, and drops everything else without a word; so it does with whole lines
 * before one that is not blank.
 */
export function asGhost(lines: Lines, edit: Edit, cursor: number): Edit | null {
  if (edit.start !== edit.end || edit.text === "") {
    return null;
  }
  const here = lines.place(cursor);
  const there = Math.abs(edit.start - cursor) <= SLIDE ? slid(lines.text, edit, cursor) : null;
  if (there !== null) {
    const behind = lines.row(here.line).slice(here.column);
    return /[\r\n]$/.test(there.text) && behind.trim() !== "" ? null : there;
  }
  const place = lines.place(edit.start);
  if (place.line !== here.line || edit.start < cursor || /[\r\n]/.test(edit.text)) {
    return null;
  }
  return { start: cursor, end: edit.start, text: lines.text.slice(cursor, edit.start) + edit.text };
}

/** Rows between the cursor and an edit. */
export function rowsAway(row: number, rows: View): number {
  return Math.max(rows.first - row, row - rows.last, 0);
}

/** The next key press goes to the edit before another one takes it. */
export function isFar(row: number, rows: View, view: View | null): boolean {
  const hidden = view !== null && (rows.first < view.first || rows.first > view.last);
  return hidden || rowsAway(row, rows) > JUMP_ROWS;
}
