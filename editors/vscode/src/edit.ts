// An edit of a text, places counted in UTF-16 units from its beginning, as VS Code counts them.

/** Puts `text` in the place of what stands from `start` up to `end`. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** One change that was made to a document: `removed` units at `start` became `text`. */
export interface Change {
  readonly start: number;
  readonly removed: number;
  readonly text: string;
}

/** The text after an edit. */
export function applied(text: string, edit: Edit): string {
  return text.slice(0, edit.start) + edit.text + text.slice(edit.end);
}

/** The same text with line ends of one kind, as the editor writes them into a document. */
export function withLineEnds(text: string, lineEnd: string): string {
  return text.replace(/\r\n|\r|\n/g, lineEnd);
}

/** Whether a text may be cut here: between neither the halves of a character nor those of a line end. */
function mayCut(text: string, at: number): boolean {
  if (at <= 0 || at >= text.length) {
    return true;
  }
  const before = text.charCodeAt(at - 1);
  const behind = text.charCodeAt(at);
  const pair = before >= 0xd800 && before < 0xdc00 && behind >= 0xdc00 && behind < 0xe000;
  return !pair && !(before === 13 && behind === 10);
}

/** Units that two texts share at their beginning, and then at their end, nothing being cut in half. */
export function shared(old: string, now: string): { front: number; back: number } {
  const most = Math.min(old.length, now.length);
  let front = 0;
  while (front < most && old.charCodeAt(front) === now.charCodeAt(front)) {
    front += 1;
  }
  while (!mayCut(old, front) || !mayCut(now, front)) {
    front -= 1;
  }
  let back = 0;
  while (back < most - front && old.charCodeAt(old.length - back - 1) === now.charCodeAt(now.length - back - 1)) {
    back += 1;
  }
  while (!mayCut(old, old.length - back) || !mayCut(now, now.length - back)) {
    back -= 1;
  }
  return { front, back };
}

/** Without what its old and its new text share. */
export function trimmed(text: string, edit: Edit): Edit {
  const old = text.slice(edit.start, edit.end);
  const { front, back } = shared(old, edit.text);
  return {
    start: edit.start + front,
    end: edit.end - back,
    text: edit.text.slice(front, edit.text.length - back),
  };
}

/** Whether it changes nothing. */
export function isIdle(text: string, edit: Edit): boolean {
  return text.slice(edit.start, edit.end) === edit.text;
}

/**
 * An insertion elsewhere that gives the same text, at `place`; null where there is none. "a\n" put before a line and
 * "\na" put behind it are the same.
 */
export function slid(text: string, edit: Edit, place: number): Edit | null {
  if (edit.start !== edit.end) {
    return null;
  }
  const from = Math.min(edit.start, place);
  const to = Math.max(edit.start, place);
  const whole = text.slice(from, edit.start) + edit.text + text.slice(edit.start, to);
  const ahead = text.slice(from, place);
  const behind = text.slice(place, to);
  if (!whole.startsWith(ahead) || !whole.endsWith(behind)) {
    return null;
  }
  const inserted = whole.slice(ahead.length, whole.length - behind.length);
  return mayCut(text, place) ? { start: place, end: place, text: inserted } : null;
}

/**
 * The edit after a change of the document: moved by a change before it, shortened by typing what it inserts, null where
 * the change touches it.
 */
export function rebased(edit: Edit, change: Change): Edit | null {
  const end = change.start + change.removed;
  const at = edit.start;
  if (edit.start === edit.end && change.removed === 0 && change.start === at) {
    const rest = edit.text.slice(change.text.length);
    return edit.text.startsWith(change.text) && rest !== ""
      ? { start: at + change.text.length, end: at + change.text.length, text: rest }
      : null;
  }
  if (end <= at) {
    const shift = change.text.length - change.removed;
    return { start: at + shift, end: edit.end + shift, text: edit.text };
  }
  return change.start >= edit.end ? edit : null;
}
