// Continue's own adapter, as its editor extensions use it: it decides by marks in the messages which route is meant.
import { pathToFileURL } from "node:url";
import path from "node:path";

const modules = process.env.CALOMEL_NODE_MODULES;
const entry = path.join(modules, "@continuedev", "openai-adapters", "dist", "index.js");
const { constructLlmApi } = await import(pathToFileURL(entry).href);
const { CALOMEL_URL: url, CALOMEL_TOKEN: apiKey } = process.env;
const api = constructLlmApi({ provider: "inception", apiKey, apiBase: `${url}/v1/` });
const signal = new AbortController().signal;
const model = "mercury-coder";
const said = {};

const FILL = { prompt: "def add(a: int, b: int) -> int:\n    return ", suffix: "\n\n\nprint(add(1, 2))\n", max_tokens: 16 };
const EDIT =
  "<|recently_viewed_code_snippets|>\n\n<|/recently_viewed_code_snippets|>\n\n" +
  "<|current_file_content|>\ncurrent_file_path: shape.py\ndef area(width, height):\n" +
  "<|code_to_edit|>\n    return w<|cursor|> * height\n<|/code_to_edit|>\n\nprint(area(1, 2))\n" +
  "<|/current_file_content|>\n\n<|edit_diff_history|>\n--- shape.py\n+++ shape.py\n@@ -1,1 +1,1 @@\n" +
  "-def area(w, height):\n+def area(width, height):\n<|/edit_diff_history|>\n";
const APPLY =
  "def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\n" +
  "The following code was suggested as an edit:\n```\n# ... existing code ...\ndef two():\n    return 22\n```\n" +
  "Please apply it to the previous code.";

async function joined(stream) {
  let text = "";
  for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
  return text;
}

const ask = (content) => ({ model, messages: [{ role: "user", content }], max_tokens: 1000, stop: ["\n\n\n\n"] });
said.fill = await joined(api.fimStream({ model, ...FILL, stream: true }, signal));
said.at_the_end = await joined(api.fimStream({ model, prompt: "x = 1\ny = ", suffix: "", stream: true }, signal));
const edit = await api.chatCompletionNonStream({ ...ask(EDIT + "<|!@#IS_NEXT_EDIT!@#|>"), stream: false }, signal);
said.edit = edit.choices[0].message.content;
said.edit_streamed = await joined(
  api.chatCompletionStream({ ...ask(EDIT + "<|!@#IS_NEXT_EDIT!@#|>"), stream: true }, signal),
);
said.applied = await joined(api.chatCompletionStream({ ...ask(APPLY + "<|!@#IS_APPLY!@#|>"), stream: true }, signal));
console.log(JSON.stringify(said));
