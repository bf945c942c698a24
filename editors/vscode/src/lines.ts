// A text as lines, and places in it.

/** A line and a column, both from 0; columns in UTF-16 units. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

export class Lines {
  /** The lines, without their ends. */
  readonly rows: readonly string[];
  private readonly starts: readonly number[];

  constructor(readonly text: string) {
    const rows: string[] = [];
    const starts = [0];
    const ends = /\r\n|\r|\n/g;
    let from = 0;
    for (let found = ends.exec(text); found !== null; found = ends.exec(text)) {
      rows.push(text.slice(from, found.index));
      from = found.index + found[0].length;
      starts.push(from);
    }
    rows.push(text.slice(from));
    this.rows = rows;
    this.starts = starts;
  }

  /** A line; empty beyond the last one. */
  row(at: number): string {
    return this.rows[at] ?? "";
  }

  /** Where a place is; beyond a line it is the line's end. */
  offset(place: Place): number {
    const line = Math.min(place.line, this.rows.length - 1);
    const column = place.line > line ? this.row(line).length : place.column;
    return (this.starts[line] ?? 0) + Math.min(column, this.row(line).length);
  }

  /** The place of an offset. */
  place(offset: number): Place {
    let low = 0;
    let high = this.starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.starts[middle] ?? 0) <= offset) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return { line: low, column: Math.min(offset - (this.starts[low] ?? 0), this.row(low).length) };
  }
}

/** The lines of a piece of text. */
export function linesOf(text: string): string[] {
  return text.split(/\r\n|\r|\n/);
}
