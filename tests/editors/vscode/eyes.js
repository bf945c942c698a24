// What stands on the screen, read from the page.

/* global document, window, getComputedStyle */

window.eyes = (() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const plain = (text) => text.replace(/\u00a0/g, " ");
  const quickInput = () => document.querySelector('.quick-input-widget:not([style*="display: none"]) input');

  /** The text of a decoration, which is a pseudo-element: a string of a style sheet. */
  const contentOf = (content) => {
    const inner = content.slice(1, -1).replace(/\\([0-9a-f]{1,6}) ?|\\(.)/g, (_, hex, character) =>
      hex === undefined ? character : String.fromCodePoint(parseInt(hex, 16)),
    );
    return plain(inner);
  };

  return {
    /** The lines, without what is no text of the file; null without an editor. */
    lines() {
      const editor = document.querySelector(".editor-instance .monaco-editor");
      return editor === null
        ? null
        : all(".view-line", editor)
            .filter((line) => !line.closest(".suggest-preview-text"))
            .map((line) => [parseFloat(line.style.top), plain(line.textContent)])
            .sort((a, b) => a[0] - b[0])
            .map((pair) => pair[1]);
    },

    /** Ghost text, line by line. */
    ghost() {
      const rows = new Map();
      const spans = ".editor-instance .ghost-text-decoration, .editor-instance .suggest-preview-text .view-line";
      for (const span of all(spans)) {
        const { top, left } = span.getBoundingClientRect();
        const row = [...rows.keys()].find((known) => Math.abs(known - top) < 4) ?? top;
        rows.set(row, [...(rows.get(row) ?? []), [left, plain(span.textContent)]]);
      }
      const joined = (found) =>
        found
          .sort((a, b) => a[0] - b[0])
          .map((span) => span[1])
          .join("");
      return [...rows].sort((a, b) => a[0] - b[0]).map(([, found]) => joined(found));
    },

    /** What the extension's decorations say, and where. */
    decorations() {
      const found = [];
      for (const span of all(".editor-instance .view-line span")) {
        for (const side of ["::after", "::before"]) {
          const style = getComputedStyle(span, side);
          if (/^["']/.test(style.content) && contentOf(style.content).trim() !== "") {
            const over = style.zIndex === "21" ? "hint" : side === "::after" ? "box" : "foot";
            const kind = style.position === "absolute" ? over : style.marginLeft === "0px" ? "insertion" : "hint";
            const { top, left } = span.getBoundingClientRect();
            found.push({ kind, text: contentOf(style.content), top, left, indent: parseFloat(style.left) });
          }
        }
      }
      return found;
    },

    /** Tops of the signs in the margin that say that there is something. */
    signs: () =>
      all(".editor-instance .cgmr")
        .filter((sign) => getComputedStyle(sign).backgroundImage.includes("here"))
        .map((sign) => sign.getBoundingClientRect().top),

    /** Pieces of text that are struck out, with their tops. */
    struck: () =>
      all(".editor-instance .view-line span")
        .filter((span) => span.children.length === 0 && span.textContent !== "")
        .filter((span) => getComputedStyle(span).textDecorationLine.includes("line-through"))
        .map((span) => [span.getBoundingClientRect().top, plain(span.textContent)]),

    place: () => document.querySelector("#status\\.editor\\.selection")?.textContent ?? "",

    /** The item in the status bar: its text, and what it says to screen readers. */
    status() {
      const item = document.querySelector('[id^="calomel.calomel"]');
      return item === null ? ["", ""] : [item.textContent, item.getAttribute("aria-label") ?? ""];
    },

    /** Everything that the bar at the bottom says. */
    bar: () => plain(document.querySelector(".part.statusbar")?.textContent ?? ""),
    /** The guide that is open; empty where none is. */
    guide: () => plain(document.querySelector(".gettingStartedContainer")?.textContent ?? ""),
    /** The text of every editor that can be seen. */
    texts: () => all(".editor-instance .view-lines").map((lines) => plain(lines.textContent)),
    /** The end of the output channel that is open. */
    output: () => plain(document.querySelector(".part.panel .view-lines")?.textContent ?? ""),
    toasts: () => all(".notification-list-item-message").map((each) => each.textContent),
    tabs: () => all(".tab").map((tab) => tab.textContent),
    activeTab: () => document.querySelector(".tab.active")?.textContent ?? "",
    menuIsOpen: () => document.querySelector(".suggest-widget.visible") !== null,
    /** What stands in the box that opens in the middle; null where none is open. */
    quickInput: () => quickInput()?.value ?? null,
    quickRows: () => all(".quick-input-list .monaco-list-row").map((row) => row.textContent),
    focusedRow: () => document.querySelector(".quick-input-list .monaco-list-row.focused")?.textContent ?? "",
  };
})();
