/** Suggestions of what to label next, one by one. */

import { need } from "./dom";
import type { Session } from "./session";

const AT_ONCE = 20;
const AHEAD = 4; // suggestions that are made ready before they are come to: quick keys find them drawn at once
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
  private turn = 0;
  private readonly skipped = new Set<number>();

  constructor(
    private readonly session: Session,
    private readonly prepare: (rows: number[]) => void,
  ) {
    this.button.hidden = session.source.suggest === undefined;
    this.button.addEventListener("click", () => (this.active ? this.stop() : void this.start()));
    need("queue-skip").addEventListener("click", () => this.skip());
    need("queue-stop").addEventListener("click", () => this.stop());
  }

  /** Whether suggestions are shown, or asked for. */
  get active(): boolean {
    return !this.card.hidden;
  }

  /** Asks for suggestions and shows the first. */
  async start(): Promise<void> {
    const { session } = this;
    const turn = ++this.turn;
    const overtaken = session.seek();
    session.selection.value = [];
    this.rows = [];
    this.card.hidden = false;
    this.button.setAttribute("aria-pressed", "true");
    need("queue-place").textContent = "Looking for what to label next …";
    need("queue-why").textContent = "";
    session.status.busy("Looking for what to label next …");
    await session.status.attempt(async () => {
      const answer = await session.suggest(AT_ONCE + this.skipped.size).catch((error: unknown) => {
        if (turn === this.turn) this.stop();
        throw error;
      });
      if (turn !== this.turn) return; // stopped or started anew in the meantime
      this.rows = (answer?.rows ?? []).filter((row) => !this.skipped.has(row)).slice(0, AT_ONCE);
      if (answer === undefined || this.rows.length === 0) {
        this.stop();
        session.status.say("There is nothing left to suggest.");
        return;
      }
      this.why = WHY[answer.reason];
      this.at = 0;
      const elsewhere = overtaken();
      this.show(!elsewhere);
      session.status.say(
        elsewhere
          ? "Suggestions are there; the window that you pinned stays until you press s."
          : "Keys 1 to 9 label the suggested window, n names a new label, s skips.",
      );
    });
  }

  stop(): void {
    if (this.active && this.rows.length === 0) this.session.status.say("Stopped.");
    this.turn++;
    this.card.hidden = true;
    this.button.setAttribute("aria-pressed", "false");
  }

  skip(): void {
    const row = this.session.onScreen;
    if (row === null || !this.active) return;
    if (row === this.rows[this.at]) this.skipped.add(row);
    this.done(row);
  }

  /** Goes on after a window was labelled: to the next suggestion, or back to the one that it was not. */
  done(row: number): void {
    if (!this.active || this.rows.length === 0) return;
    if (row === this.rows[this.at]) this.at += 1;
    while (this.at < this.rows.length && this.session.labelled.value.includes(this.rows[this.at])) this.at += 1;
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

  private show(pin = true): void {
    need("queue-place").textContent = `Suggestion ${this.at + 1} of ${this.rows.length}`;
    need("queue-why").textContent = this.why;
    if (pin) this.session.pinned.value = this.rows[this.at];
    this.prepare(this.rows.slice(this.at + 1, this.at + 1 + AHEAD));
  }
}
