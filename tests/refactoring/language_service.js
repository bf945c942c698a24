// TypeScript's language service over lines of JSON: {"do", "file", "text", ...} in, {"found"} or {"error"} out.
"use strict";
const readline = require("node:readline");
const ts = require(process.argv[2]);

let current = { file: "a.ts", text: "", version: 0 };
const host = {
  getCompilationSettings: () => ({
    allowJs: true, checkJs: true, noLib: true, noResolve: true, jsx: ts.JsxEmit.Preserve, target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.ESNext, moduleDetection: ts.ModuleDetectionKind.Auto, types: [],
  }),
  getScriptFileNames: () => [current.file],
  getScriptVersion: () => String(current.version),
  getScriptSnapshot: (name) => (name === current.file ? ts.ScriptSnapshot.fromString(current.text) : undefined),
  getCurrentDirectory: () => "/",
  getDefaultLibFileName: () => "/lib.d.ts",
  fileExists: (name) => name === current.file,
  readFile: (name) => (name === current.file ? current.text : undefined),
};
const service = ts.createLanguageService(host);

function open({ file, text }) {
  if (current.file !== file || current.text !== text) current = { file, text, version: current.version + 1 };
  return service.getProgram().getSourceFile(file);
}

function names(request) {
  const source = open(request);
  if (source.parseDiagnostics.length) throw new Error("it does not parse");
  const found = [];
  const add = (kind, name) => {
    if (!name) return;
    if (ts.isIdentifier(name) || ts.isPrivateIdentifier(name)) found.push([kind, name.getStart(source), name.getText(source)]);
    else if (name.elements) for (const each of name.elements) if (each.name) add(kind, each.name);
  };
  const inFunction = (node) => {
    for (let at = node.parent; at; at = at.parent) if (ts.isFunctionLike(at)) return true;
    return false;
  };
  const visit = (node) => {
    if (ts.isParameter(node) && node.parent.body && node.name.getText(source) !== "this") add("parameter", node.name);
    else if (ts.isVariableDeclaration(node)) add(inFunction(node) ? "local" : "definition", node.name);
    else if ((ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node)) && node.name)
      add(inFunction(node) ? "local" : "definition", node.name);
    else if ((ts.isMethodDeclaration(node) || ts.isPropertyDeclaration(node)) && ts.isClassLike(node.parent))
      add("member", node.name);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function rename(request) {
  open(request);
  const info = service.getRenameInfo(request.file, request.start, {});
  if (!info.canRename) throw new Error(info.localizedErrorMessage);
  const options = { providePrefixAndSuffixTextForRename: true };
  const places = service.findRenameLocations(request.file, request.start, false, false, options) ?? [];
  return places.map((each) => [
    each.textSpan.start,
    each.textSpan.start + each.textSpan.length,
    (each.prefixText ?? "") + request.name + (each.suffixText ?? ""),
  ]);
}

function unknown(request) {
  const source = open(request);
  if (source.parseDiagnostics.length) throw new Error("it does not parse");
  const found = service.getSemanticDiagnostics(request.file).filter((each) => [2304, 2552, 18004].includes(each.code));
  return [...new Set(found.map((each) => request.text.slice(each.start, each.start + each.length)))];
}

const todo = { names, rename, unknown };
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  let answer;
  try {
    const request = JSON.parse(line);
    answer = { found: todo[request.do](request) };
  } catch (error) {
    answer = { error: String(error.message ?? error) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
});
