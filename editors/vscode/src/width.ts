// How many columns a text takes on the screen.

// East Asian wide characters and emoji, by their blocks: enough to put a box beside them.
const WIDE = /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u;
const ZERO = /\p{Mn}|\p{Me}|\u200b|\u200d|\ufe0f/u;

/** The text with tabs as blanks. */
export function untabbed(text: string, tabSize: number): string {
  let out = "";
  let column = 0;
  for (const character of text) {
    if (character === "\t") {
      const fill = tabSize - (column % tabSize);
      out += " ".repeat(fill);
      column += fill;
    } else {
      out += character;
      column += widthOf(character);
    }
  }
  return out;
}

function widthOf(character: string): number {
  if (character >= " " && character <= "~") {
    return 1;
  }
  return ZERO.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
}

/** Columns of a line. */
export function width(line: string, tabSize: number): number {
  let columns = 0;
  for (const character of untabbed(line, tabSize)) {
    columns += widthOf(character);
  }
  return columns;
}
