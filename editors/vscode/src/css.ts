// Style sheets' own words. A decoration's text passes through a style sheet, so that every character that could end a
// string there, or begin anything else, is written as its number.

/** A string of a style sheet, quotes included. */
export function cssString(text: string): string {
  let out = "";
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    const plain = /^[A-Za-z0-9 ]$/.test(character);
    const half = code >= 0xd800 && code < 0xe000;
    const shown = half || code === 0 ? 0xfffd : code;
    out += plain ? character : `\\${shown.toString(16)} `;
  }
  return `"${out}"`;
}

/** Declarations, to be put behind another one's value. */
export function declarations(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}: ${value}`)
    .join("; ");
}
