// What the user sees of an edit, as data: which text is struck, what stands beside it, and what the hints say.

import type { Hunk } from "./hunk";
import { rowsOf } from "./hunk";
import type { Lines } from "./lines";
import type { View } from "./placement";
import { isFar } from "./placement";
import { untabbed, width } from "./width";

/** Columns of a row. */
export interface Stretch {
  readonly row: number;
  readonly start: number;
  readonly end: number;
}

/** A piece of text that appears between two characters. */
export interface Insertion {
  readonly row: number;
  readonly column: number;
  readonly text: string;
}

/** Lines that appear over the text, beside or below what they take the place of. */
export interface Box {
  readonly row: number;
  readonly where: "beside" | "below";
  /** Columns to its left. */
  readonly column: number;
  readonly lines: readonly string[];
  /** Said at its lower edge; empty for nothing. */
  readonly foot: string;
}

export interface Hint {
  readonly row: number;
  readonly text: string;
  /** Where it goes over the line below (1) or above (-1), and the columns to its left. */
  readonly over?: { readonly rows: 1 | -1; readonly column: number };
}

export interface Picture {
  readonly struck: readonly Stretch[];
  readonly insertions: readonly Insertion[];
  readonly boxes: readonly Box[];
  /** Rows before which new lines come. */
  readonly seams: readonly number[];
  readonly hints: readonly Hint[];
  /** Sign in the margin: where the edit is, and, far from it, which way it lies. */
  readonly signs: readonly { readonly row: number; readonly sign: "here" | "up" | "down" }[];
  readonly far: boolean;
}

/** What the picture depends on beside the edit. */
export interface Scene {
  readonly cursor: number;
  readonly view: View | null;
  readonly tabSize: number;
  readonly preview: "auto" | "beside" | "below";
  readonly hints: boolean;
  /** The key that takes it, or goes there. */
  readonly key: string;
  /** The editor's menu is open, and covers what stands below the cursor. */
  readonly menu: boolean;
  /** Where the edit is among those of one answer, and whether others follow; null where it is the only one. */
  readonly chain: { readonly index: number; readonly total: number; readonly rest: readonly unknown[] } | null;
  /** The user types past it: where it is far away, it is not announced. */
  readonly passed: boolean;
}

const GAP = 3;
const ALL_KEY = "Alt+A";
// Beside a line that is longer a box would often lie beyond the right edge, which nobody tells an extension.
const LONGEST_BESIDE = 64;
const MOST_LINES = 30;
const MOST_COLUMNS = 120;

/** The picture of an edit's changes. */
export function picture(lines: Lines, changes: readonly Hunk[], scene: Scene): Picture {
  const bottom = lines.rows.length - 1;
  const rows = rowsOf(changes, bottom);
  const far = isFar(scene.cursor, rows, scene.view);
  const foot = scene.hints && !far && !scene.menu ? `${scene.key} to accept, Esc to dismiss${counted(scene)}` : "";
  const struck: Stretch[] = [];
  const insertions: Insertion[] = [];
  const boxes: Box[] = [];
  const seams: number[] = [];
  for (const hunk of changes) {
    if (hunk.kind === "line") {
      for (const part of hunk.parts) {
        if (part.end > part.start) {
          struck.push({ row: hunk.row, start: part.start, end: part.end });
        }
        if (part.text !== "") {
          insertions.push({ row: hunk.row, column: part.end, text: untabbed(part.text, scene.tabSize) });
        }
      }
      continue;
    }
    for (let row = hunk.row; row < hunk.row + hunk.count; row += 1) {
      const line = lines.row(row);
      struck.push({ row, start: line.length - line.trimStart().length, end: line.length });
    }
    if (hunk.lines.length > 0) {
      boxes.push(boxOf(lines, hunk, scene, foot));
    }
    if (hunk.kind === "insert") {
      seams.push(hunk.row);
    }
  }
  const up = rows.first < scene.cursor;
  const signs: { row: number; sign: "here" | "up" | "down" }[] = [{ row: rows.first, sign: "here" }];
  if (far && scene.cursor !== rows.first) {
    signs.push({ row: scene.cursor, sign: up ? "up" : "down" });
  }
  const hints = scene.hints ? hintsOf(rows, scene, far, boxes.length > 0).map((hint) => placed(lines, hint, scene.tabSize)) : [];
  return { struck, insertions, boxes, seams, hints, signs, far };
}

/** A sign in the margin of a row, and nothing else. */
export function mark(row: number): Picture {
  const signs = [{ row, sign: "here" as const }];
  return { struck: [], insertions: [], boxes: [], seams: [], hints: [], signs, far: false };
}

/** A sentence behind a row, and nothing else. */
export function sentence(lines: Lines, row: number, text: string, tabSize: number): Picture {
  return { ...mark(row), hints: [placed(lines, { row, text }, tabSize)], signs: [] };
}

/** What announces an edit of another file at a place such as `helper.py:12`. */
export function announcement(place: string, scene: Scene): Picture {
  const { cursor, hints, key, passed } = scene;
  const said = hints && !passed ? [{ row: cursor, text: `${key}: edit in ${place}${counted(scene)}` }] : [];
  return { struck: [], insertions: [], boxes: [], seams: [], hints: said, signs: [], far: true };
}

/** Which of several it is, and the key that takes all that are left. */
function counted({ chain }: Scene): string {
  if (chain === null) {
    return "";
  }
  const all = chain.rest.length > 0 ? ` · ${ALL_KEY}: all` : "";
  return ` · ${chain.index} of ${chain.total}${all}`;
}

function boxOf(lines: Lines, hunk: Hunk, scene: Scene, foot: string): Box {
  const shown = hunk.lines.slice(0, MOST_LINES).map((line) => {
    const flat = untabbed(line, scene.tabSize);
    return flat.length > MOST_COLUMNS ? `${flat.slice(0, MOST_COLUMNS - 1)}…` : flat;
  });
  if (hunk.lines.length > MOST_LINES) {
    const more = hunk.lines.length - MOST_LINES;
    shown.push(`… ${more} more ${more === 1 ? "line" : "lines"}`);
  }
  const height = shown.length + (foot === "" ? 0 : 1);
  const first = Math.min(hunk.row, lines.rows.length - 1);
  let longest = 0;
  for (let row = first; row < first + Math.max(height, hunk.count) && row < lines.rows.length; row += 1) {
    longest = Math.max(longest, width(lines.row(row), scene.tabSize));
  }
  const beside = scene.preview === "beside" || (scene.preview === "auto" && longest <= LONGEST_BESIDE);
  if (beside) {
    return { row: first, where: "beside", column: longest + GAP, lines: shown, foot };
  }
  // Under what is struck, or under the line that an insertion comes behind.
  const above = hunk.count > 0 ? hunk.row + hunk.count - 1 : Math.max(hunk.row - 1, 0);
  return { row: Math.min(above, lines.rows.length - 1), where: "below", column: 0, lines: shown, foot };
}

/** Behind a long line a hint would be cut at the edge of the editor: it goes behind the line below or above. */
function placed(lines: Lines, hint: Hint, tabSize: number): Hint {
  const columns = (row: number): number => (row in lines.rows ? width(lines.row(row), tabSize) : Infinity);
  if (columns(hint.row) <= LONGEST_BESIDE) {
    return hint;
  }
  for (const rows of [1, -1] as const) {
    const column = columns(hint.row + rows);
    if (column <= LONGEST_BESIDE) {
      return { ...hint, over: { rows, column: column + GAP } };
    }
  }
  return hint;
}

function hintsOf(rows: View, scene: Scene, far: boolean, boxed: boolean): Hint[] {
  const covered = scene.menu && rows.first !== scene.cursor;
  if (!far && !covered) {
    return boxed && !scene.menu ? [] : [{ row: rows.first, text: `${scene.key}${counted(scene)}` }];
  }
  if (scene.passed && !covered) {
    return [];
  }
  const up = rows.first < scene.cursor;
  const text = `${scene.key}: edit on line ${rows.first + 1} ${up ? "↑" : "↓"}${counted(scene)}`;
  const hints: Hint[] = [{ row: scene.cursor, text }];
  const { view } = scene;
  if (view !== null && far) {
    const edge = rows.first > view.last ? view.last : rows.first < view.first ? view.first : null;
    if (edge !== null && edge !== scene.cursor) {
      hints.push({ row: edge, text });
    }
  }
  return hints;
}
