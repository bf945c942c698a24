// Lists the suggestions. Every text becomes a text node: nothing of a log is ever read as HTML.
"use strict";
(() => {
  const rows = JSON.parse(document.getElementById("suggestions-data").textContent);
  const form = document.querySelector("form.filters");
  const list = document.getElementById("suggestions");
  const count = document.getElementById("count");
  const PAGE = 50;
  let page = 0;

  const make = (tag, style, text) => {
    const element = document.createElement(tag);
    if (style) element.className = style;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  const fill = (name, values) => {
    const select = form.elements.namedItem(name);
    for (const value of [...new Set(values)].sort()) select.append(new Option(value, value));
  };
  const status = (row) => (row.shown ? "shown" : row.silence || "not shown");
  fill("outcome", rows.map((row) => row.outcome));
  fill("status", rows.map(status));
  fill("source", rows.map((row) => row.source));
  fill("kind", rows.map((row) => row.kind));
  fill("log", rows.map((row) => row.log));

  const orders = {
    time: () => 0,
    confidence: (one, other) => (other.confidence ?? -1) - (one.confidence ?? -1),
    unsure: (one, other) => (one.confidence ?? 2) - (other.confidence ?? 2),
    saved: (one, other) => other.saved_characters - one.saved_characters,
    latency: (one, other) => other.latency_ms - one.latency_ms,
  };

  const chosen = () => {
    const wanted = (name) => form.elements.namedItem(name).value;
    const words = wanted("words").toLowerCase();
    const least = Number(wanted("least"));
    const found = rows.filter((row) =>
      (!wanted("outcome") || row.outcome === wanted("outcome")) &&
      (!wanted("status") || status(row) === wanted("status")) &&
      (!wanted("source") || row.source === wanted("source")) &&
      (!wanted("kind") || row.kind === wanted("kind")) &&
      (!wanted("log") || row.log === wanted("log")) &&
      (!least || (row.confidence ?? 0) >= least) &&
      (!words || `${row.path}\n${row.before}\n${row.after}`.toLowerCase().includes(words)));
    return found.sort(orders[wanted("order")]);
  };

  // Lines that differ, between those that both texts begin and end with; the part of a line that differs is marked.
  const diff = (before, after) => {
    const block = make("pre");
    const old = before.split(/\r\n|\r|\n/), now = after.split(/\r\n|\r|\n/);
    let start = 0, end = 0;
    const least = Math.min(old.length, now.length);
    while (start < least && old[start] === now[start]) start++;
    while (end < least - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
    const gone = old.slice(start, old.length - end), came = now.slice(start, now.length - end);
    const marked = (style, sign, line, other) => {
      const row = make("span", style);
      row.append(sign);
      let left = 0, right = 0;
      const most = other === undefined ? 0 : Math.min(line.length, other.length);
      while (left < most && line[left] === other[left]) left++;
      while (right < most - left && line[line.length - 1 - right] === other[other.length - 1 - right]) right++;
      if (other === undefined) row.append(line);
      else row.append(line.slice(0, left), make("mark", "", line.slice(left, line.length - right)), line.slice(line.length - right));
      return row;
    };
    for (const line of old.slice(Math.max(0, start - 2), start)) block.append(make("span", "", ` ${line}`));
    const pairs = gone.length === came.length;
    gone.forEach((line, at) => block.append(marked("minus", "-", line, pairs ? came[at] : undefined)));
    came.forEach((line, at) => block.append(marked("plus", "+", line, pairs ? gone[at] : undefined)));
    for (const line of old.slice(old.length - end, old.length - end + 2)) block.append(make("span", "", ` ${line}`));
    return block;
  };

  const clock = (seconds) => {
    const whole = Math.floor(seconds);
    const two = (number) => String(number).padStart(2, "0");
    return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
  };

  const article = (row) => {
    const element = make("article");
    const header = make("header");
    header.append(make("span", `badge outcome-${row.outcome}`, row.outcome.replace("_", " ")));
    header.append(make("b", "", row.path), make("span", "", `${row.log}, entry ${row.entry}, ${clock(row.time)}`));
    header.append(make("span", "", `${row.kind}, ${row.source}`));
    header.append(make("span", "", row.confidence === null ? "no confidence" : `confidence ${row.confidence.toFixed(3)}`));
    header.append(make("span", "", row.shown ? `shown ${row.visible_seconds.toFixed(2)} s` : `not shown: ${row.silence || "-"}`));
    header.append(make("span", "", `${row.latency_ms.toFixed(1)} ms`), make("span", "", `saved ${row.saved_characters}`));
    if (row.kept !== null) header.append(make("span", "", row.kept ? "kept" : "not kept"));
    if (row.real_outcome) header.append(make("span", "", `really ${row.real_outcome}`));
    element.append(header, diff(row.before, row.after));
    if (row.expected !== null && row.expected !== row.after) {
      const person = make("details");
      person.append(make("summary", "faint", "what the person made of it"), diff(row.before, row.expected));
      element.append(person);
    }
    const signals = Object.entries(row.signals).sort().map(([name, value]) => `${name} ${Number(value.toFixed(4))}`);
    if (signals.length) element.append(make("div", "faint", signals.join(", ")));
    return element;
  };

  const show = () => {
    const found = chosen();
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    page = Math.min(Math.max(0, page), pages - 1);
    list.replaceChildren(...found.slice(page * PAGE, (page + 1) * PAGE).map(article));
    count.textContent = `${found.length} of ${rows.length} suggestions, page ${page + 1} of ${pages}`;
    form.elements.namedItem("earlier").disabled = page === 0;
    form.elements.namedItem("later").disabled = page === pages - 1;
  };

  form.addEventListener("input", () => { page = 0; show(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.elements.namedItem("earlier").addEventListener("click", () => { page--; show(); });
  form.elements.namedItem("later").addEventListener("click", () => { page++; show(); });
  show();
})();
