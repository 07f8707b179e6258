/** Suggestions of what to label next, one by one. */

import { need } from "./dom";
import type { Session } from "./session";

const AT_ONCE = 20;
const WHY = {
  coverage: "far from everything labelled so far",
  uncertainty: "where the labels so far leave the most doubt",
};

export class Queue {
  private readonly card = need("queue");
  private readonly button = need<HTMLButtonElement>("start-queue");
  private rows: number[] = [];
  private at = 0;
  private why = "";
  private readonly skipped = new Set<number>();

  constructor(private readonly session: Session) {
    this.button.hidden = session.source.suggest === undefined;
    this.button.addEventListener("click", () => (this.active ? this.stop() : void this.start()));
    need("queue-skip").addEventListener("click", () => this.skip());
    need("queue-stop").addEventListener("click", () => this.stop());
  }

  get active(): boolean {
    return !this.card.hidden;
  }

  /** Asks for suggestions and shows the first. */
  async start(): Promise<void> {
    const { status, selection } = this.session;
    await status.attempt(async () => {
      status.busy("Looking for what to label next …");
      const answer = await this.session.suggest(AT_ONCE + this.skipped.size);
      this.rows = (answer?.rows ?? []).filter((row) => !this.skipped.has(row)).slice(0, AT_ONCE);
      if (answer === undefined || this.rows.length === 0) {
        this.stop();
        status.say("There is nothing left to suggest.");
        return;
      }
      this.why = WHY[answer.reason];
      this.at = 0;
      selection.value = [];
      this.card.hidden = false;
      this.button.setAttribute("aria-pressed", "true");
      this.show();
      status.say("Keys 1 to 9 label the suggested window, n names a new label, s skips.");
    });
  }

  stop(): void {
    this.card.hidden = true;
    this.button.setAttribute("aria-pressed", "false");
  }

  skip(): void {
    if (!this.active) return;
    this.skipped.add(this.rows[this.at]);
    this.next();
  }

  /** Goes on to the next window. */
  next(): void {
    this.at += 1;
    if (this.at < this.rows.length) this.show();
    else void this.start();
  }

  /** Goes back to a window that has lost its label again. */
  back(row: number): void {
    const place = this.rows.indexOf(row);
    if (!this.active || place < 0) return;
    this.at = place;
    this.show();
  }

  private show(): void {
    need("queue-place").textContent = `Suggestion ${this.at + 1} of ${this.rows.length}`;
    need("queue-why").textContent = this.why;
    this.session.pinned.value = this.rows[this.at];
  }
}
