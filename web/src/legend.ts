/** What the colours mean, which column they show, and which categories are drawn. */

import { type Colouring, HUES, css, hue, ramp } from "./colour";
import { h, need } from "./dom";
import { show } from "./format";
import type { Session } from "./session";
import type { Signal } from "./signal";
import type { Codes } from "./source";

export class Legend {
  private readonly select = need<HTMLSelectElement>("colour");
  private readonly body = need("legend");
  private readonly key = need("legend-mark");
  private off = new Set<number>();

  constructor(
    private readonly session: Session,
    private readonly dark: Signal<boolean>,
  ) {
    let pointed = false;
    this.select.addEventListener("pointerdown", () => (pointed = true));
    this.select.addEventListener("keydown", () => (pointed = false));
    this.select.addEventListener("change", () => {
      if (pointed) this.select.blur(); // the page's keys work again; who uses the keyboard stays in the list
      void session.status.attempt(() => session.colourBy(this.select.value));
    });
    session.about.follow(() => this.choices());
    session.colouring.listen((now, before) => {
      if (now?.column.name !== before?.column.name) this.off = new Set();
      this.choices();
      this.draw();
    });
    dark.listen(() => this.draw());
    session.hidden.listen(() => {
      if (this.off.size > 0 && !session.hides("legend")) this.off = new Set(); // all filters were cleared
      this.draw();
      this.mark();
    });
    session.labelled.follow(() => this.mark());
  }

  /** What the rings on the map are. */
  private mark(): void {
    const { labelled, hidden } = this.session;
    const count = labelled.value.filter((row) => hidden.value[row] === 0).length;
    const how = this.session.source.classify === undefined ? "labelled" : "labelled by hand";
    this.key.hidden = count === 0;
    this.key.replaceChildren(h("span", { class: "ring", "aria-hidden": "true" }), h("span", { class: "entry-name" }, how), h("span", { class: "count" }, count.toLocaleString("en")));
  }

  private choices(): void {
    const { columns } = this.session.about.value;
    this.select.replaceChildren(...columns.map(({ name, title }) => h("option", { value: name }, title)));
    this.select.value = this.session.colouring.value?.column.name ?? "";
    this.select.disabled = columns.length === 0;
  }

  private draw(): void {
    const colouring = this.session.colouring.value;
    if (colouring === null) this.body.replaceChildren();
    else this.body.replaceChildren(...(colouring.column.kind === "category" ? this.entries(colouring) : this.scale(colouring)));
  }

  private scale({ column, codes, range }: Colouring): HTMLElement[] {
    if (range === null) return [];
    const stops = Array.from({ length: 17 }, (_, i) => css(ramp(i / 16, this.dark.value)));
    const bar = h("div", { class: "ramp", role: "img", "aria-label": `From ${show(column, range.low)} to ${show(column, range.high)}` });
    bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    const [least, most] = range.cut ? ["≤ ", "≥ "] : ["", ""];
    const ends = h(
      "div",
      { class: "ramp-ends" },
      h("span", {}, least + show(column, range.low)),
      h("span", {}, most + show(column, range.high)),
    );
    let unknown = 0;
    for (let row = 0; row < codes.length; row++) if (Number.isNaN(codes[row])) unknown++;
    return unknown === 0 ? [bar, ends] : [bar, ends, h("p", { class: "hint" }, `${unknown.toLocaleString("en")} unknown, grey`)];
  }

  /** A line for every category with how many windows have it: those that the filters leave. */
  private entries({ column, codes }: Colouring): HTMLElement[] {
    const categories = column.categories ?? [];
    const counts = tally(codes, categories.length, this.session.hides("filters"));
    const all = tally(codes, categories.length, null);
    const shown = [...categories.keys(), -1].filter((code) => all[code + 1] > 0);
    const list = h("ul", { class: "entries", "aria-label": `Categories of ${column.title}` });
    for (const code of shown) {
      const name = code < 0 ? "none" : categories[code];
      const swatch = h("span", { class: "swatch" });
      swatch.style.background = css(hue(code, this.dark.value));
      const toggle = h(
        "button",
        {
          class: "entry",
          type: "button",
          "aria-pressed": String(!this.off.has(code)),
          title: `Show or hide “${name}”`,
          click: () => this.hide(this.off.has(code) ? [...this.off].filter((other) => other !== code) : [...this.off, code]),
        },
        swatch,
        h("span", { class: "entry-name" }, name),
        h("span", { class: "count" }, counts[code + 1].toLocaleString("en")),
      );
      const others = shown.filter((other) => other !== code);
      const alone = others.length > 0 && others.every((other) => this.off.has(other)) && !this.off.has(code);
      const only = h(
        "button",
        {
          class: "only",
          type: "button",
          "aria-label": alone ? "Show all categories" : `Show only “${name}”`,
          click: () => this.hide(alone ? [] : others),
        },
        alone ? "all" : "only",
      );
      list.append(h("li", {}, toggle, only));
    }
    const many = categories.length > HUES;
    return many ? [list, h("p", { class: "hint" }, `Colours repeat after ${HUES} categories.`)] : [list];
  }

  private hide(codes: number[]): void {
    this.off = new Set(codes);
    const held = document.activeElement;
    const place = [...this.body.querySelectorAll("button")].indexOf(held as HTMLButtonElement);
    const colouring = this.session.colouring.value;
    if (colouring !== null) {
      const { codes } = colouring;
      const mask = new Uint8Array(codes.length);
      for (let row = 0; row < mask.length; row++) if (this.off.has(codes[row])) mask[row] = 1;
      this.session.hide("legend", this.off.size === 0 ? null : mask);
    }
    this.draw();
    if (place >= 0) this.body.querySelectorAll("button")[place]?.focus();
  }
}

/** How many windows have each code from -1 on, without those that `out` marks. */
export function tally(codes: Codes, n: number, out: Uint8Array | null): Uint32Array {
  const counts = new Uint32Array(n + 1);
  for (let row = 0; row < codes.length; row++) if (out === null || out[row] === 0) counts[codes[row] + 1]++;
  return counts;
}
