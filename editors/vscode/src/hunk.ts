// What an edit changes, line by line.

import { diffArrays } from "diff";
import type { Edit } from "./edit";
import { shared } from "./edit";
import { Lines, linesOf } from "./lines";

/** Within one line: the columns from `start` up to `end` become `text`. */
export interface Part {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/**
 * One change of whole lines, or within one line. `row` and `count` are rows of the text before all changes; of an
 * insertion, `row` is the one that it is put before.
 */
export interface Hunk {
  readonly kind: "line" | "insert" | "delete" | "replace";
  readonly row: number;
  readonly count: number;
  /** What stands there afterwards. */
  readonly lines: readonly string[];
  /** Of a changed line. */
  readonly parts: readonly Part[];
}

// More pieces than this in a line are harder to read than the new line.
const MOST_PARTS = 3;
// As are pieces that leave less than this of a line.
const MOST_CHANGED = 0.6;

/** The changes of an edit, in order. Making them all gives what the edit gives. */
export function hunks(before: Lines, edit: Edit): Hunk[] {
  const from = before.place(edit.start);
  const to = before.place(edit.end);
  const old = before.rows.slice(from.line, to.line + 1);
  const head = before.row(from.line).slice(0, from.column);
  const tail = before.row(to.line).slice(to.column);
  const now = linesOf(head + edit.text + tail);
  const found: Hunk[] = [];
  let row = from.line;
  let removed: string[] = [];
  let added: string[] = [];
  const close = (): void => {
    found.push(...between(row, removed, added));
    row += removed.length;
    removed = [];
    added = [];
  };
  for (const piece of diffArrays(old, now)) {
    if (piece.removed) {
      removed.push(...piece.value);
    } else if (piece.added) {
      added.push(...piece.value);
    } else {
      close();
      row += piece.value.length;
    }
  }
  close();
  return found;
}

function between(row: number, removed: string[], added: string[]): Hunk[] {
  if (removed.length === 0 && added.length === 0) {
    return [];
  }
  if (removed.length !== added.length) {
    const kind = removed.length === 0 ? "insert" : added.length === 0 ? "delete" : "replace";
    return [{ kind, row, count: removed.length, lines: added, parts: [] }];
  }
  const each = removed.map((old, at): Hunk => {
    const now = added[at] ?? "";
    const parts = partsOf(old, now);
    return isRewritten(parts, old, now)
      ? { kind: "replace", row: row + at, count: 1, lines: [now], parts: [] }
      : { kind: "line", row: row + at, count: 1, lines: [now], parts };
  });
  return joined(each);
}

/** Neighbouring lines that are rewritten are one change. */
function joined(each: readonly Hunk[]): Hunk[] {
  const found: Hunk[] = [];
  for (const hunk of each) {
    const last = found.at(-1);
    if (last?.kind === "replace" && hunk.kind === "replace" && last.row + last.count === hunk.row) {
      found[found.length - 1] = { ...last, count: last.count + hunk.count, lines: [...last.lines, ...hunk.lines] };
    } else {
      found.push(hunk);
    }
  }
  return found;
}

/** Words, and every other character for itself. */
function tokens(line: string): string[] {
  return line.match(/[\p{L}\p{N}_]+|./gsu) ?? [];
}

function partsOf(old: string, now: string): Part[] {
  const parts: Part[] = [];
  let column = 0;
  let removed = "";
  let added = "";
  const close = (): void => {
    if (removed !== "" || added !== "") {
      parts.push(part(column, removed, added));
      column += removed.length;
      removed = added = "";
    }
  };
  for (const piece of diffArrays(tokens(old), tokens(now))) {
    const text = piece.value.join("");
    if (piece.removed) {
      removed += text;
    } else if (piece.added) {
      added += text;
    } else {
      close();
      column += text.length;
    }
  }
  close();
  return parts;
}

/** "na" to "name" is an insertion of "me", not another word. */
function part(column: number, removed: string, added: string): Part {
  const { front, back } = shared(removed, added);
  return front + back === Math.min(removed.length, added.length)
    ? {
        start: column + front,
        end: column + removed.length - back,
        text: added.slice(front, added.length - back),
      }
    : { start: column, end: column + removed.length, text: added };
}

function isRewritten(parts: readonly Part[], old: string, now: string): boolean {
  const removed = parts.reduce((sum, each) => sum + each.end - each.start, 0);
  const added = parts.reduce((sum, each) => sum + each.text.length, 0);
  return (
    parts.length > MOST_PARTS ||
    (removed > MOST_CHANGED * old.trim().length && added > MOST_CHANGED * now.trim().length && removed > 0)
  );
}

/** The rows that the changes stand at, the last one included. */
export function rowsOf(changes: readonly Hunk[], bottom: number): { first: number; last: number } {
  const first = changes[0];
  const last = changes.at(-1);
  if (first === undefined || last === undefined) {
    return { first: 0, last: 0 };
  }
  return {
    first: Math.min(first.row, bottom),
    last: Math.min(last.row + Math.max(last.count - 1, 0), bottom),
  };
}

/** The smallest piece that can be taken by itself, as an edit: a part of a line, or a line. */
export function pieceOf(before: Lines, hunk: Hunk, whole: boolean): Edit {
  const start = before.offset({ line: hunk.row, column: 0 });
  const first = hunk.parts[0];
  if (first !== undefined) {
    const from = whole ? 0 : first.start;
    const to = whole ? before.row(hunk.row).length : first.end;
    return { start: start + from, end: start + to, text: whole ? (hunk.lines[0] ?? "") : first.text };
  }
  const lineEnd = before.text.includes("\r\n") ? "\r\n" : "\n";
  if (hunk.kind === "replace" && hunk.lines.length === hunk.count) {
    return { start, end: start + before.row(hunk.row).length, text: hunk.lines[0] ?? "" };
  }
  if (hunk.kind === "insert" && hunk.row < before.rows.length) {
    return { start, end: start, text: (hunk.lines[0] ?? "") + lineEnd };
  }
  if (hunk.kind === "insert") {
    const end = before.text.length;
    return { start: end, end, text: lineEnd + (hunk.lines[0] ?? "") };
  }
  return all(before, hunk, lineEnd);
}

/** The changes of an edit as edits of their own, in order; the edit itself where that is all there is. */
export function editsOf(before: Lines, edit: Edit, changes: readonly Hunk[]): readonly Edit[] {
  if (changes.length === 1) {
    return [edit];
  }
  const lineEnd = before.text.includes("\r\n") ? "\r\n" : "\n";
  return changes.flatMap((hunk) => {
    const start = before.offset({ line: hunk.row, column: 0 });
    const parts = hunk.parts.map((part) => ({ start: start + part.start, end: start + part.end, text: part.text }));
    return hunk.kind === "line" ? parts : [all(before, hunk, lineEnd)];
  });
}

/** A whole change as one edit. */
function all(before: Lines, hunk: Hunk, lineEnd: string): Edit {
  const next = hunk.row + hunk.count;
  const start = before.offset({ line: hunk.row, column: 0 });
  if (next < before.rows.length) {
    return {
      start,
      end: before.offset({ line: next, column: 0 }),
      text: hunk.lines.map((line) => line + lineEnd).join(""),
    };
  }
  const end = before.text.length;
  if (hunk.lines.length > 0 || hunk.row === 0) {
    return { start, end, text: hunk.lines.join(lineEnd) };
  }
  // The last lines go, and with them the line end before them.
  const above = hunk.row - 1;
  return { start: before.offset({ line: above, column: before.row(above).length }), end, text: "" };
}
