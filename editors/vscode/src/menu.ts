// The editor's menu of completions beside a suggestion, which newer editors can hold back.

const HELD_BACK = "offWhenInlineCompletions";
/** The first version with that value is 1.121. */
const MINOR = 121;

/** Whether an editor of this version knows how to hold its menu back. */
export function canHoldBack(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 1 || (major === 1 && minor >= MINOR);
}

/** The setting with the menu held back in code; null where it is, or where it does not open by itself. */
export function heldBack(setting: unknown): Record<string, unknown> | null {
  if (setting === true || setting === "on") {
    return { other: HELD_BACK, comments: "on", strings: "on" };
  }
  if (setting === null || typeof setting !== "object") {
    return null;
  }
  const { other = "on", ...rest } = setting as Record<string, unknown>;
  return other === true || other === "on" ? { ...rest, other: HELD_BACK } : null;
}
