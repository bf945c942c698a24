import assert from "node:assert/strict";
import { test } from "node:test";
import { contextPage } from "../src/contextPage";
import { cssString, declarations } from "../src/css";
import { Lines } from "../src/lines";
import { width } from "../src/width";

test("no text ends a string of a style sheet", () => {
  const quoted = cssString(`";} body { display: none } /* \\ ' \n </style>`);
  assert.match(quoted, /^"(?:[A-Za-z0-9 ]|\\[0-9a-f]+ )*"$/);
  assert.equal(cssString("a(b)"), `"a\\28 b\\29 "`);
  assert.equal(cssString("😀"), `"\\1f600 "`);
  assert.equal(cssString("\ud800"), `"\\fffd "`);
  assert.equal(declarations({ a: "1", b: "2" }), "a: 1; b: 2");
});

test("places and offsets agree, whatever ends the lines", () => {
  for (const text of ["a\nbc\n\nd", "a\r\nbc\r\n\r\nd", ""]) {
    const lines = new Lines(text);
    lines.rows.forEach((row, line) => {
      for (let column = 0; column <= row.length; column += 1) {
        assert.deepEqual(lines.place(lines.offset({ line, column })), { line, column });
      }
    });
  }
});

test("wide characters take two columns, tabs reach the next stop", () => {
  assert.equal(width("a漢b", 4), 4);
  assert.equal(width("a\tb", 4), 5);
  assert.equal(width("e\u0301", 4), 1);
});

test("what the model sees is a page with each part, its tokens, and why", () => {
  const page = contextPage(
    { parts: [{ part: "prefix", tokens: 12, text: "x = ```1```", why: "It stands before the cursor." }] },
    "python",
  );
  assert.match(page, /12 tokens/);
  assert.match(page, /````python\nx = ```1```\n````/);
  assert.match(contextPage({ message: "ignored" }, "python"), /ignored/);
});
