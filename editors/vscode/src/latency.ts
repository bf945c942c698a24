// How long answers take.

const KEPT = 20;
const ENOUGH = 5;
// A suggestion that comes later than this meets a user who has typed on.
export const SLOW_MS = 1500;

export class Latency {
  private readonly times: number[] = [];

  /** An answer took so long. */
  add(milliseconds: number): void {
    this.times.push(milliseconds);
    if (this.times.length > KEPT) {
      this.times.shift();
    }
  }

  /** Another model answers. */
  clear(): void {
    this.times.length = 0;
  }

  /** Of the last answers; null where there were too few to tell. */
  get median(): number | null {
    const sorted = [...this.times].sort((a, b) => a - b);
    return sorted.length < ENOUGH ? null : (sorted[Math.floor(sorted.length / 2)] ?? null);
  }

  get isSlow(): boolean {
    return (this.median ?? 0) > SLOW_MS;
  }
}
