/** Which windows are shown: by names, or by numbers between two ends. Filters combine: a window passes all of them. */

import { h, need, svg } from "./dom";
import { show, utc } from "./format";
import { tally } from "./legend";
import type { Memory } from "./memory";
import type { Session } from "./session";
import { Signal } from "./signal";
import type { Codes, Column } from "./source";
import { windows } from "./status";

/** Names that pass, null for none; or the ends between which numbers pass, null where there is no end. */
export interface Filter {
  column: string;
  names?: (string | null)[];
  low?: number | null;
  high?: number | null;
}

const LISTED = 200; // names in the editor; the others are found by typing
const BARS = 44;
const FIRST = ["label", "prediction", "recording", "group", "time", "start", "outlier", "confidence"];

export class Filters {
  readonly active = new Signal<Filter[]>([]);
  private readonly bar = need("filters");
  private readonly editor = need("filter-editor");
  private readonly choice = need<HTMLSelectElement>("filter-column");
  private readonly body = need("filter-body");
  private turn = 0;

  constructor(
    private readonly session: Session,
    private readonly memory: Memory,
  ) {
    need("filter-open").addEventListener("click", () => this.toggle());
    need("filter-close").addEventListener("click", () => this.close());
    need("filter-clear").addEventListener("click", () => this.clear());
    this.choice.addEventListener("change", () => void this.edit(this.choice.value));
    document.addEventListener("pointerdown", (event) => {
      if (this.open && !this.bar.contains(event.target as Node)) this.close();
    });
    session.about.listen(() => void session.status.attempt(() => this.apply()));
    session.hidden.follow((hidden) => this.count(hidden));
    this.active.listen((filters) => {
      memory.keep({ filters });
      void session.status.attempt(() => this.apply());
    });
  }

  /** Takes up the filters that were kept, as far as their columns are there. */
  async restore(): Promise<void> {
    const kept = Array.isArray(this.memory.last.filters) ? (this.memory.last.filters as Filter[]) : [];
    this.active.value = kept.filter(({ column }) => this.session.column(column) !== undefined);
    await this.apply();
  }

  get open(): boolean {
    return !this.editor.hidden;
  }

  toggle(): void {
    if (this.open) this.close();
    else void this.edit(this.choice.value || this.columns()[0]?.name);
  }

  close(): void {
    this.editor.hidden = true;
    need("filter-open").setAttribute("aria-expanded", "false");
    need("filter-open").focus();
  }

  /** Shows every window again, also those that the legend has switched off. */
  clear(): void {
    this.session.hide("legend", null);
    this.active.value = [];
    if (this.open) void this.edit(this.choice.value);
    this.session.status.say(`All ${windows(this.session.about.value.n)} are shown.`);
  }

  /** Puts a filter in the place of one of the same column; null takes it away. */
  private set(column: string, filter: Omit<Filter, "column"> | null): void {
    const others = this.active.value.filter((one) => one.column !== column);
    this.active.value = filter === null ? others : [...others, { column, ...filter }];
  }

  private columns(): Column[] {
    const place = (name: string): number => (FIRST.indexOf(name) + FIRST.length + 1) % (FIRST.length + 1);
    return [...this.session.about.value.columns].sort((a, b) => place(a.name) - place(b.name));
  }

  private async apply(): Promise<void> {
    const turn = ++this.turn;
    const mask = await this.mask(this.active.value);
    if (turn === this.turn) this.session.hide("filters", mask);
    this.chips();
  }

  /** 1 for every window that some filter leaves out; null where there is no filter. */
  private async mask(filters: Filter[]): Promise<Uint8Array | null> {
    const found = filters.map((filter) => ({ filter, column: this.session.column(filter.column) }));
    const codes = await Promise.all(found.map(({ column }) => (column === undefined ? null : this.session.codes(column))));
    if (filters.length === 0) return null;
    const mask = new Uint8Array(this.session.about.value.n);
    found.forEach(({ filter, column }, i) => leaveOut(mask, filter, column, codes[i]));
    return mask;
  }

  private count(hidden: Uint8Array): void {
    let left = 0;
    for (let row = 0; row < hidden.length; row++) left += 1 - hidden[row];
    const all = left === hidden.length;
    need("filter-count").textContent = all ? "" : `${left.toLocaleString("en")} of ${windows(hidden.length)}`;
    need("filter-clear").hidden = all && this.active.value.length === 0;
  }

  private chips(): void {
    need("filter-chips").replaceChildren(
      ...this.active.value.map((filter) => {
        const title = this.session.column(filter.column)?.title ?? filter.column;
        const text = describe(filter, this.session.column(filter.column));
        return h(
          "span",
          { class: "filter-chip" },
          h("button", { type: "button", class: "quiet", title: "Change this filter", click: () => void this.edit(filter.column) }, h("span", {}, title), h("strong", {}, text)),
          h("button", { type: "button", class: "quiet", "aria-label": `Remove the filter of ${title}`, click: () => this.set(filter.column, null) }, "×"),
        );
      }),
    );
    need("filter-clear").hidden = this.active.value.length === 0 && !this.session.hidden.value.includes(1);
  }

  private async edit(name: string): Promise<void> {
    const columns = this.columns();
    const column = columns.find((one) => one.name === name) ?? columns[0];
    this.choice.replaceChildren(...columns.map((one) => h("option", { value: one.name }, one.title)));
    this.choice.value = column.name;
    this.editor.hidden = false;
    need("filter-open").setAttribute("aria-expanded", "true");
    await this.session.status.attempt(async () => {
      const others = await this.mask(this.active.value.filter((one) => one.column !== column.name));
      const codes = await this.session.codes(column);
      if (this.choice.value !== column.name) return;
      const own = this.active.value.find((one) => one.column === column.name);
      this.body.replaceChildren(...(column.kind === "category" ? this.names(column, codes, others, own) : this.numbers(column, codes, others, own)));
      this.body.querySelector("input")?.focus();
    });
  }

  /** A box for every name, with how many windows have it among those that the other filters leave. */
  private names(column: Column, codes: Codes, others: Uint8Array | null, own?: Filter): HTMLElement[] {
    const categories = column.categories ?? [];
    const counts = tally(codes, categories.length, others);
    const chosen = new Set(own?.names ?? []);
    const all = [-1, ...categories.keys()].filter((code) => counts[code + 1] > 0 || chosen.has(categories[code] ?? null));
    const list = h("ul", { class: "filter-names", "aria-label": `Names of ${column.title}` });
    const field = h("input", { type: "text", placeholder: "Find a name", "aria-label": "Find a name", autocomplete: "off", spellcheck: "false" });
    const fill = (): void => {
      const text = field.value.trim().toLowerCase();
      const fitting = all.filter((code) => spoken(column, categories[code] ?? null).toLowerCase().includes(text));
      list.replaceChildren(
        ...fitting.slice(0, LISTED).map((code) => {
          const name = categories[code] ?? null;
          const box = h("input", { type: "checkbox", checked: chosen.has(name) });
          box.addEventListener("change", () => {
            if (box.checked) chosen.add(name);
            else chosen.delete(name);
            this.set(column.name, chosen.size === 0 ? null : { names: [...chosen] });
          });
          const count = counts[code + 1].toLocaleString("en");
          return h("li", {}, h("label", {}, box, h("span", { class: "entry-name" }, spoken(column, name)), h("span", { class: "count" }, count)));
        }),
      );
      if (fitting.length > LISTED) list.append(h("li", { class: "hint" }, `${(fitting.length - LISTED).toLocaleString("en")} more: type to find them`));
    };
    field.addEventListener("input", fill);
    fill();
    return all.length > 8 ? [field, list] : [list];
  }

  /** Two ends, below a picture of how many windows lie where. */
  private numbers(column: Column, codes: Codes, others: Uint8Array | null, own?: Filter): HTMLElement[] {
    let [least, most] = [Infinity, -Infinity];
    const counts = (row: number): boolean => Number.isFinite(codes[row]) && (others === null || others[row] === 0);
    for (let row = 0; row < codes.length; row++) {
      if (!counts(row)) continue;
      least = Math.min(least, codes[row]);
      most = Math.max(most, codes[row]);
    }
    if (least > most) return [h("p", { class: "hint" }, "The other filters leave no window with a value here.")];
    const bars = new Uint32Array(BARS);
    for (let row = 0; row < codes.length; row++) {
      if (counts(row)) bars[Math.min(BARS - 1, Math.floor(((codes[row] - least) / (most - least || 1)) * BARS))]++;
    }
    const top = Math.max(...bars);
    const path = Array.from(bars, (count, i) => `M${i} 40h0.8v-${count === 0 ? 0 : (1 + (38 * count) / top).toFixed(1)}h-0.8z`).join("");
    const picture = svg("svg", { viewBox: `0 0 ${BARS} 40`, preserveAspectRatio: "none", class: "filter-bars", role: "img", "aria-label": "How many windows lie where" }, svg("path", { d: path }));
    const time = column.kind === "time";
    const ends = (["low", "high"] as const).map((end) => {
      const value = own?.[end] ?? null;
      const field = h("input", {
        type: time ? "text" : "number",
        step: "any",
        value: value === null ? "" : time ? utc(value) : value,
        placeholder: show(column, end === "low" ? least : most),
        "aria-label": `${end === "low" ? "From" : "To"}, ${column.title}`,
      });
      field.addEventListener("change", () => {
        const [low, high] = ends.map(({ value: text }) => (text.trim() === "" ? null : time ? instant(text) : Number(text)));
        if (Number.isNaN(low) || Number.isNaN(high)) this.session.status.fail("A time is written as 2026-03-02 08:00:00, in UTC.");
        else this.set(column.name, low === null && high === null ? null : { low, high });
      });
      return field;
    });
    const span = h("div", { class: "ramp-ends" }, h("span", {}, show(column, least)), h("span", {}, show(column, most)));
    const fields = h("div", { class: time ? "filter-ends times" : "filter-ends" }, h("label", {}, "from", ends[0]), h("label", {}, "to", ends[1]));
    return [h("div", {}, picture, span), fields];
  }
}

function leaveOut(mask: Uint8Array, { names, low, high }: Filter, column: Column | undefined, codes: Codes | null): void {
  if (column === undefined || codes === null) return; // it comes back, with a classifier or a label
  if (names !== undefined) {
    const pass = new Set(names.map((name) => (name === null ? -1 : (column.categories ?? []).indexOf(name))));
    const out = Uint8Array.from({ length: (column.categories?.length ?? 0) + 1 }, (_, i) => Number(!pass.has(i - 1)));
    for (let row = 0; row < mask.length; row++) mask[row] |= out[codes[row] + 1];
    return;
  }
  const [from, to] = [low ?? -Infinity, high ?? Infinity];
  for (let row = 0; row < mask.length; row++) if (!(codes[row] >= from && codes[row] <= to)) mask[row] = 1;
}

/** Seconds since 1970 of a time in UTC as people write it; NaN where it is none. */
function instant(text: string): number {
  return Date.parse(`${text.trim().replace(" ", "T").replace(/Z$/, "")}${text.trim().length > 10 ? "Z" : ""}`) / 1000;
}

function spoken(column: Column, name: string | null): string {
  return name ?? (column.name === "label" ? "unlabelled" : "none");
}

function describe({ names, low, high }: Filter, column: Column | undefined): string {
  if (column === undefined) return "";
  if (names !== undefined) {
    const first = spoken(column, names[0]);
    return names.length === 1 ? first : `${first} + ${names.length - 1}`;
  }
  const [from, to] = [low, high].map((end) => (end === null || end === undefined ? null : show(column, end)));
  if (from === null) return `≤ ${to}`;
  return to === null ? `≥ ${from}` : `${from} to ${to}`;
}
