// A text as lines, and places in it.

import { TextDocument } from "vscode-languageserver-textdocument";

/** A line and a column, both from 0; columns in UTF-16 units. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

export class Lines {
  /** The lines, without their ends. */
  readonly rows: readonly string[];
  private readonly document: TextDocument;

  constructor(readonly text: string) {
    this.rows = linesOf(text);
    this.document = TextDocument.create("", "", 0, text);
  }

  /** A line; empty beyond the last one. */
  row(at: number): string {
    return this.rows[at] ?? "";
  }

  /** Where a place is; beyond a line it is the line's end. */
  offset({ line, column }: Place): number {
    return this.document.offsetAt({ line, character: column });
  }

  /** The place of an offset. */
  place(offset: number): Place {
    const { line, character } = this.document.positionAt(offset);
    return { line, column: character };
  }
}

/** The lines of a piece of text. */
export function linesOf(text: string): string[] {
  return text.split(/\r\n|\r|\n/);
}
