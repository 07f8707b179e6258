/** Labels that are probably wrong, one below the other: each is confirmed or changed by one key. */

import type { SeriesCache } from "./cache";
import { h, need } from "./dom";
import { address } from "./format";
import type { Session } from "./session";
import type { Doubt } from "./source";

const AHEAD = 3; // entries whose series are asked for before they are come to

export class DoubtList {
  private readonly card = need("doubts");
  private readonly list = need("doubts-list");
  private readonly button = need<HTMLButtonElement>("show-doubts");
  private entries: Doubt[] = [];
  private at = 0;
  private turn = 0;

  constructor(
    private readonly session: Session,
    private readonly cache: SeriesCache,
  ) {
    this.button.hidden = session.source.doubts === undefined;
    this.button.addEventListener("click", () => (this.active ? this.stop() : void this.start()));
    need("doubts-confirm").addEventListener("click", () => this.answer("confirm"));
    need("doubts-change").addEventListener("click", () => this.answer("change"));
    need("doubts-close").addEventListener("click", () => this.stop());
    session.hidden.listen(() => void this.draw());
    session.pinned.listen((row) => this.point(row));
  }

  /** Whether the list is shown, or asked for. */
  get active(): boolean {
    return !this.card.hidden;
  }

  async start(): Promise<void> {
    const { session } = this;
    const turn = ++this.turn;
    session.selection.value = [];
    this.entries = [];
    this.card.hidden = false;
    this.button.setAttribute("aria-pressed", "true");
    need("doubts-sentence").textContent = "Comparing every label with what the others say …";
    this.list.replaceChildren();
    session.status.busy("Comparing every label with what the others say …");
    await session.status.attempt(async () => {
      const answer = await session.doubts().catch((error: unknown) => {
        if (turn === this.turn) this.stop();
        throw error;
      });
      if (turn !== this.turn || answer === undefined) return;
      this.entries = answer.doubts;
      this.at = 0;
      need("doubts-sentence").textContent = answer.sentence;
      await this.draw();
      this.pin();
      session.status.say(this.shown().length === 0 ? answer.sentence : "c confirms a label, a takes what is suggested, 1 to 9 give another one.");
    });
  }

  stop(): void {
    this.turn++;
    this.card.hidden = true;
    this.button.setAttribute("aria-pressed", "false");
  }

  /** Answers the entry that is on screen: its label is right, or the suggestion is. */
  answer(how: "confirm" | "change"): void {
    const entry = this.shown().find(({ row }) => row === this.session.onScreen);
    if (!this.active || entry === undefined) return;
    const name = how === "confirm" ? entry.label : entry.suggestion;
    const labelling = this.session.label([entry.row], name, how === "confirm");
    this.done(entry.row);
    void this.session.status.attempt(() => labelling);
  }

  /** Takes a window that has been answered out of the list, and goes to the next. */
  done(row: number): void {
    const place = this.shown().findIndex((entry) => entry.row === row);
    if (!this.active || place < 0) return;
    this.entries = this.entries.filter((entry) => entry.row !== row);
    this.at = place;
    void this.draw();
    this.pin();
  }

  /** The entries that the filters leave. */
  private shown(): Doubt[] {
    return this.entries.filter(({ row }) => this.session.hidden.value[row] === 0);
  }

  private pin(): void {
    const shown = this.shown();
    const entry = shown[Math.min(this.at, shown.length - 1)];
    if (entry === undefined) return;
    this.session.pinned.value = entry.row;
    const next = shown.slice(this.at + 1, this.at + 1 + AHEAD).map(({ row }) => row);
    void this.cache.get(next).catch(() => undefined); // asked for again when it is come to
  }

  private point(row: number | null): void {
    for (const line of this.list.querySelectorAll<HTMLElement>("[data-row]")) {
      line.setAttribute("aria-current", String(line.dataset.row === String(row)));
      if (line.dataset.row === String(row)) line.scrollIntoView({ block: "nearest" });
    }
  }

  private async draw(): Promise<void> {
    if (!this.active) return;
    const shown = this.shown();
    need("doubts-title").textContent = shown.length === 0 ? "Probably wrong" : `Probably wrong · ${shown.length}`;
    const most = this.session.about.value.limits.series_rows;
    const listed = shown.slice(0, most);
    const series = listed.length === 0 ? [] : await this.cache.get(listed.map(({ row }) => row));
    if (shown.length !== this.shown().length) return; // drawn again in the meantime
    const lines = listed.map(({ row, label, given, suggestion, confidence }, i) =>
      h(
        "button",
        { type: "button", class: "doubt", "data-row": row, title: `${label} has a probability of ${percent(given)}, ${suggestion} of ${percent(confidence)}`, click: () => (this.session.pinned.value = row) },
        h("span", { class: "doubt-names" }, h("s", {}, label), " ", h("strong", {}, suggestion)),
        h("span", { class: "doubt-place" }, address(series[i]) || `Window ${row}`),
        h("span", { class: "count" }, percent(given)),
      ),
    );
    this.list.replaceChildren(...lines);
    if (shown.length > most) this.list.append(h("p", { class: "hint" }, `${shown.length - most} more come as these are answered.`));
    this.point(this.session.pinned.value);
  }
}

function percent(part: number): string {
  return part < 0.001 ? "< 0.1 %" : `${(100 * part).toFixed(1)} %`;
}
