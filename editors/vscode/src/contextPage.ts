// What the model would see, as a page to read.

export interface ContextPart {
  readonly part: string;
  readonly tokens: number;
  readonly text: string;
  readonly why: string;
}

export interface ContextAnswer {
  readonly parts?: readonly ContextPart[];
  readonly message?: string;
}

const counted = (tokens: number): string => (tokens === 1 ? "1 token" : `${tokens} tokens`);

/** The page, in Markdown; no text can end its own block. */
export function contextPage(answer: ContextAnswer, language: string): string {
  const parts = answer.parts ?? [];
  if (parts.length === 0) {
    return `Nothing: ${answer.message ?? "no model sees this file."}\n`;
  }
  const total = parts.reduce((sum, part) => sum + part.tokens, 0);
  const sections = parts.map(({ part, tokens, text, why }) => {
    const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
    const fence = "`".repeat(longest + 1);
    return `## ${part}: ${counted(tokens)}\n\n${why}\n\n${fence}${language}\n${text}\n${fence}\n`;
  });
  return `# What the model would see here: ${counted(total)}\n\n${sections.join("\n")}`;
}
