// Which settings the server is told: those that the user set, and nothing else, so that a calomel.toml counts where VS
// Code is silent. A workspace may be anybody's: it may make Calomel see less, not more.

export interface Inspected {
  readonly defaultValue?: unknown;
  readonly globalValue?: unknown;
  readonly workspaceValue?: unknown;
  readonly workspaceFolderValue?: unknown;
}

/** What a workspace may do to a setting: `free`, `lower` (a number), `add` (patterns that hide), `never`. */
export type Rule = "free" | "lower" | "add" | "never";

/** Read from the package's own description of its settings. */
export interface Described {
  /** As the server calls it. */
  readonly name: string;
  /** As VS Code does, which makes words of it. */
  readonly key: string;
  readonly rule: Rule;
  readonly highest: number;
}

type Json = Record<string, unknown>;

/** Settings of the extension itself, which the server does not know. */
const OWN = new Set(["path", "wheel", "editor"]);

/** The settings of the server, as the package describes them. */
export function described(properties: Readonly<Record<string, Json>>): Described[] {
  return Object.entries(properties)
    .map(([key, property]) => ({ key: key.replace(/^calomel\./, ""), property }))
    .filter(({ key }) => !OWN.has(key.split(".")[0] ?? ""))
    .map(({ key, property }) => ({
      name: key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      key,
      rule: ruleOf(property["x-workspace"]),
      highest: typeof property["maximum"] === "number" ? property["maximum"] : Number.POSITIVE_INFINITY,
    }));
}

function ruleOf(said: unknown): Rule {
  return said === "lower" || said === "add" || said === "never" ? said : "free";
}

/** A tree of sections of what was set. */
export function explicit(all: readonly Described[], inspect: (key: string) => Inspected | undefined): Json {
  const tree: Json = {};
  for (const one of all) {
    const [section = "", key = ""] = one.name.split(".");
    put(tree, section, key, valueOf(one, inspect(one.key) ?? {}));
    if (section === "backend") {
      // The server reads it and names the present name; a workspace cannot set any of these.
      put(tree, "server", key, inspect(earlierKey(one.key))?.globalValue);
    }
  }
  return tree;
}

/** What a setting of `backend` was called before. */
export function earlierKey(key: string): string {
  return key.replace(/^backend\./, "server.");
}

function put(tree: Json, section: string, key: string, value: unknown): void {
  if (value !== undefined && value !== null) {
    ((tree[section] ??= {}) as Json)[key] = value;
  }
}

function valueOf(one: Described, found: Inspected): unknown {
  const theirs = found.workspaceFolderValue ?? found.workspaceValue;
  const mine = found.globalValue;
  if (theirs === undefined || one.rule === "never") {
    return mine;
  }
  if (one.rule === "lower") {
    const bound = typeof mine === "number" ? mine : numberOr(found.defaultValue, one.highest);
    return typeof theirs === "number" && theirs <= bound ? theirs : mine;
  }
  if (one.rule === "add") {
    return [...strings(mine), ...strings(theirs).filter((pattern) => !pattern.trimStart().startsWith("!"))];
  }
  return theirs;
}

function numberOr(value: unknown, other: number): number {
  return typeof value === "number" ? value : other;
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === "string") : [];
}
