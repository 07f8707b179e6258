/** The line below the map: what just happened, and what went wrong, in sentences. */

import { need } from "./dom";

export class Status {
  private readonly line = need("status");
  private readonly text = need("status-text");

  say(sentence: string): void {
    this.show(sentence, "");
  }

  /** Something takes a while. */
  busy(sentence: string): void {
    this.show(sentence, "busy");
  }

  fail(error: unknown): void {
    const sentence = error instanceof Error ? error.message : String(error);
    this.show(sentence, "failed");
  }

  /** Does something that may fail; a failure is said, never thrown, and gives undefined. */
  async attempt<T>(action: () => Promise<T>): Promise<T | undefined> {
    try {
      return await action();
    } catch (error) {
      this.fail(error);
      return undefined;
    }
  }

  private show(sentence: string, kind: "" | "busy" | "failed"): void {
    this.line.className = `status ${kind}`;
    this.text.textContent = sentence;
  }
}

/** "1 window", "20,000 windows" */
export function windows(count: number): string {
  return `${count.toLocaleString("en")} ${count === 1 ? "window" : "windows"}`;
}
