// Puts a picture on the screen, with the decorations that every VS Code has.

import * as vscode from "vscode";
import { cssString, declarations } from "./css";
import type { Box, Hint, Picture } from "./picture";

const ROW = Number.MAX_SAFE_INTEGER;
const INSERTED = "var(--vscode-diffEditor-insertedTextBackground)";
const EDITOR = "var(--vscode-editor-background)";

type Name = "struck" | "inserted" | "box" | "seam" | "topSeam" | "hint" | "here" | "up" | "down";

export class Painter implements vscode.Disposable {
  private readonly types: Readonly<Record<Name, vscode.TextEditorDecorationType>>;

  constructor(media: vscode.Uri) {
    const make = (options: vscode.DecorationRenderOptions): vscode.TextEditorDecorationType =>
      vscode.window.createTextEditorDecorationType({
        rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
        ...options,
      });
    const sign = (name: string): vscode.DecorationRenderOptions => ({
      light: { gutterIconPath: vscode.Uri.joinPath(media, `${name}-light.svg`) },
      dark: { gutterIconPath: vscode.Uri.joinPath(media, `${name}-dark.svg`) },
      gutterIconSize: "contain",
    });
    const green = new vscode.ThemeColor("editorGutter.addedBackground");
    const lane = { overviewRulerColor: green, overviewRulerLane: vscode.OverviewRulerLane.Left };
    this.types = {
      struck: make({
        backgroundColor: new vscode.ThemeColor("diffEditor.removedTextBackground"),
        textDecoration: "line-through",
      }),
      inserted: make({}),
      box: make({}),
      seam: make({ isWholeLine: true, borderStyle: "solid", borderWidth: "0 0 2px 0", borderColor: green }),
      topSeam: make({ isWholeLine: true, borderStyle: "solid", borderWidth: "2px 0 0 0", borderColor: green }),
      hint: make({}),
      here: make({ ...sign("here"), ...lane }),
      up: make(sign("up")),
      down: make(sign("down")),
    };
  }

  /** Draw in an editor, in the place of what is drawn there. */
  paint(editor: vscode.TextEditor, picture: Picture): void {
    const put = (name: Name, ranges: readonly vscode.DecorationOptions[]): void => {
      editor.setDecorations(this.types[name], ranges);
    };
    const row = (at: number): vscode.DecorationOptions => ({ range: new vscode.Range(at, 0, at, 0) });
    put(
      "struck",
      picture.struck.map(({ row: at, start, end }) => ({ range: new vscode.Range(at, start, at, end) })),
    );
    put(
      "inserted",
      picture.insertions.map(({ row: at, column, text }) => ({
        range: new vscode.Range(at, column, at, column),
        renderOptions: { after: { contentText: " ", textDecoration: insertion(text) } },
      })),
    );
    put(
      "box",
      picture.boxes.map((box) => ({
        range: new vscode.Range(box.row, ROW, box.row, ROW),
        renderOptions: {
          after: { contentText: " ", textDecoration: boxStyle(box) },
          ...(box.foot === "" ? {} : { before: { contentText: " ", textDecoration: footStyle(box) } }),
        },
      })),
    );
    put(
      "seam",
      picture.seams.filter((at) => at > 0).map((at) => row(at - 1)),
    );
    put(
      "topSeam",
      picture.seams.filter((at) => at === 0).map((at) => row(at)),
    );
    put(
      "hint",
      picture.hints.map((hint) => ({
        range: new vscode.Range(hint.row, ROW, hint.row, ROW),
        renderOptions: { after: { contentText: " ", textDecoration: hintStyle(hint) } },
      })),
    );
    for (const name of ["here", "up", "down"] as const) {
      put(
        name,
        picture.signs.filter((each) => each.sign === name).map((each) => row(each.row)),
      );
    }
  }

  /** Take everything away. */
  clear(editor: vscode.TextEditor): void {
    for (const type of Object.values(this.types)) {
      editor.setDecorations(type, []);
    }
  }

  dispose(): void {
    for (const type of Object.values(this.types)) {
      type.dispose();
    }
  }
}

// A decoration can name a colour and a text of one line. What else a style sheet knows comes in behind the value of
// `text-decoration`, as many extensions do it; each text is written by `cssString`.

function behindNone(values: Readonly<Record<string, string>>): string {
  return `none; ${declarations(values)}`;
}

function insertion(text: string): string {
  return behindNone({
    content: `${cssString(text)} !important`,
    "white-space": "pre",
    background: INSERTED,
    color: "var(--vscode-editor-foreground)",
    "border-radius": "2px",
  });
}

const SMALL = 0.85;
const BADGE: Readonly<Record<string, string>> = {
  "white-space": "pre",
  padding: "0 1ch",
  "border-radius": "3px",
  color: "var(--vscode-badge-foreground)",
  background: "var(--vscode-badge-background)",
  "font-size": `${100 * SMALL}%`,
};

function hintStyle({ text, over }: Hint): string {
  const content = `${cssString(text)} !important`;
  if (over === undefined) {
    return behindNone({ content, margin: "0 0 0 3ch", ...BADGE });
  }
  return behindNone({ content, ...atop(over.column, over.rows, SMALL), "z-index": "21", ...BADGE });
}

/** Over the text, so many rows below its own one; characters are of this size. */
function atop(column: number, rows: number, size: number): Readonly<Record<string, string>> {
  return {
    position: "absolute",
    left: `${(column / size).toFixed(2)}ch`,
    top: `${100 * rows}%`,
    "z-index": "20",
    "text-align": "left",
    "pointer-events": "none",
  };
}

/** Over the text, so many lines below the one that it hangs on; its characters are of this size. */
function over(box: Box, below: number, size: number): Readonly<Record<string, string>> {
  return atop(box.column, below + (box.where === "below" ? 1 : 0), size);
}

function boxStyle(box: Box): string {
  return behindNone({
    content: `${cssString(box.lines.join("\n"))} !important`,
    "white-space": "pre",
    ...over(box, 0, 1),
    padding: "0 1ch",
    color: "var(--vscode-editor-foreground)",
    background: `linear-gradient(${INSERTED}, ${INSERTED}), ${EDITOR}`,
    "box-shadow": "0 0 0 1px var(--vscode-editorWidget-border, #8888), 0 2px 6px #0004",
    "border-radius": "3px",
  });
}

function footStyle(box: Box): string {
  return behindNone({ content: `${cssString(box.foot)} !important`, ...over(box, box.lines.length, SMALL), ...BADGE });
}
