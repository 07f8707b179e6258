/** The right side: the window under the pointer, and the pinned one beside its nearest neighbours. */

import type { SeriesCache } from "./cache";
import { css, hue, ramp } from "./colour";
import { h, need } from "./dom";
import { address, number, span, utc } from "./format";
import { type Give, labeller } from "./labeller";
import { NONE } from "./map/renderer";
import type { Session } from "./session";
import type { Signal } from "./signal";
import type { Neighbours, Series } from "./source";
import { type Range, drawing, ranges, strips, tallness } from "./strips";

const NEAREST = 8;
const PATIENCE = 35; // milliseconds that the pointer rests before a series is asked for
const LATE = 200; // milliseconds after which what is still loading looks so

export class Panel {
  private readonly pointer = need("pointer");
  private readonly pin = need("pinned");
  private readonly near = need("neighbours");
  private readonly labels = need("pinned-label");
  private readonly cards = new Map<number, HTMLElement>();
  private readonly small: number;
  private timer = 0;
  private turn = 0;
  private scale: Range[] | null = null;
  /** The neighbours of the pinned window, and null while they are asked for. */
  private found: Neighbours | null = null;

  constructor(
    private readonly session: Session,
    private readonly cache: SeriesCache,
    private readonly dark: Signal<boolean>,
    labelled: Give,
  ) {
    this.small = tallness(session.about.value.channels.length, 30, 108, 9);
    this.pointer.style.minHeight = `${this.small + 50}px`; // what is below stays where it is
    this.labels.append(labeller(session, labelled));
    need("unpin").addEventListener("click", () => (session.pinned.value = null));
    need("select-near").addEventListener("click", () => {
      if (session.onScreen !== null) session.selection.value = [session.onScreen, ...session.neighbours.value];
    });
    const section = need("pinned-section");
    const late = (): void => void section.classList.toggle("late", session.onScreen === null);
    const busy = (): void => {
      section.setAttribute("aria-busy", String(session.onScreen === null));
      if (session.onScreen === null) setTimeout(late, LATE);
      else late();
    };
    session.drawn.follow(busy);
    session.awaited.listen(busy);
    session.hovered.listen((row) => this.hover(row));
    session.pinned.follow((row) => void session.status.attempt(() => this.pinTo(row)));
    session.stepped.listen((row, before) => this.step(row, before));
    session.colouring.listen(() => this.again());
    session.about.listen(() => this.again());
    session.why.listen(() => this.again());
    dark.listen(() => this.again());
  }

  /** Goes to the card of a neighbour; it is a button, so that Enter pins it. */
  focus(row: number): void {
    this.cards.get(row)?.focus();
  }

  /** Asks for what a pin of these windows will show. */
  prepare(rows: number[]): void {
    for (const row of rows) {
      const ready = this.session.neighboursOf(row, NEAREST).then((found) => this.cache.get([row, ...found.rows]));
      ready.catch(() => undefined); // asked for again when it is come to
    }
  }

  private hover(row: number | null): void {
    clearTimeout(this.timer);
    if (row === null) return; // the last one stays: an empty card would flicker
    const show = (): void => {
      void this.session.status.attempt(async () => {
        const [series] = await this.cache.get([row]);
        await this.drawPointer(series);
      });
    };
    if (this.cache.has(row)) show();
    else this.timer = window.setTimeout(show, PATIENCE);
  }

  private async drawPointer(series: Series): Promise<void> {
    const { channels } = this.session.about.value;
    const facts = await this.facts(series);
    if (this.session.hovered.value !== series.row) return;
    this.pointer.dataset.row = String(series.row);
    this.pointer.replaceChildren(facts);
    if (series.channels.length === 0) return;
    const own = ranges([series]);
    const scale = this.scale === null ? own : own.map((range, i) => join(range, (this.scale as Range[])[i]));
    this.pointer.append(strips(series, scale, this.small, channels));
  }

  private async pinTo(row: number | null): Promise<void> {
    const turn = ++this.turn;
    this.session.drawn.value = null;
    this.session.stepped.value = null;
    this.session.neighbours.value = [];
    this.found = this.scale = null;
    need("pinned-section").hidden = row === null;
    need("pinned-hint").hidden = row !== null;
    if (row === null) {
      this.clear();
      return;
    }
    const { status } = this.session;
    const found = await status.attempt(() => this.session.neighboursOf(row, NEAREST));
    if (turn !== this.turn) return;
    this.found = found ?? { rows: [], distances: null }; // the window itself can be shown all the same
    this.session.neighbours.value = this.found.rows;
    await this.drawPinned(row, this.found).catch((error: unknown) => {
      if (this.session.pinned.value === row && this.session.drawn.value === null) this.clear(); // it shows another window
      throw error;
    });
  }

  private clear(): void {
    delete this.pin.dataset.row;
    this.pin.replaceChildren();
    this.near.replaceChildren();
    this.cards.clear();
  }

  /** Draws the same windows after labels or colours have changed. */
  private again(): void {
    const [row, found] = [this.session.pinned.value, this.found];
    if (row !== null && found !== null) void this.session.status.attempt(() => this.drawPinned(row, found));
  }

  private async drawPinned(row: number, { rows, distances }: Neighbours): Promise<void> {
    const turn = ++this.turn;
    const { channels } = this.session.about.value;
    const all = await this.cache.get([row, ...rows]);
    const scale = ranges(all);
    const facts = await this.facts(all[0]);
    const cards = await Promise.all(all.slice(1).map((series, i) => this.card(series, scale, i, distances?.[i])));
    if (turn !== this.turn) return;
    this.scale = scale.length > 0 ? scale : null;
    const again = this.pin.dataset.row === String(row) && rows.every((one) => this.cards.has(one));
    this.pin.dataset.row = String(row);
    this.pin.replaceChildren(facts);
    const why = this.session.why.value?.row === row ? this.session.why.value : null;
    if (all[0].channels.length > 0) this.pin.append(strips(all[0], scale, tallness(channels.length, 40, 132, 9), channels, why));
    if (again) {
      cards.forEach((card, i) => retell(this.cards.get(rows[i]) as HTMLElement, card));
    } else {
      this.cards.clear();
      rows.forEach((one, i) => this.cards.set(one, cards[i]));
      this.near.replaceChildren(...cards);
      reveal([this.pin, ...cards]);
    }
    this.step(this.session.stepped.value, null);
    this.session.drawn.value = row;
  }

  private async card(series: Series, scale: Range[], place: number, distance?: number): Promise<HTMLElement> {
    const { channels } = this.session.about.value;
    const words = [await this.session.value("label", series.row), series.recording].filter((word) => word !== null);
    const card = h(
      "button",
      {
        type: "button",
        class: "card",
        "data-row": series.row,
        "aria-label": `Neighbour ${place + 1}: ${words.join(", ")} ${span(series)}; pin it`,
        click: () => (this.session.pinned.value = series.row),
        pointerenter: () => (this.session.stepped.value = series.row),
        focus: () => (this.session.stepped.value = series.row),
      },
      h(
        "span",
        { class: "card-head" },
        this.swatch(series.row),
        h("span", { class: "card-name" }, String(words[0] ?? `Window ${series.row}`)),
        h("span", { class: "count" }, distance === undefined ? "" : number(distance)),
      ),
    );
    if (series.channels.length > 0) card.append(drawing(series, scale, tallness(channels.length, 26, 64, 5), channels));
    card.append(h("span", { class: "card-foot" }, address(series)));
    return card;
  }

  /** Recording, time and whatever the columns say of a window. */
  private async facts(series: Series): Promise<HTMLElement> {
    const { session } = this;
    const list = h("dl", { class: "facts" });
    const add = (title: string, value: string | number | null): void => {
      if (value !== null && value !== "") list.append(h("div", {}, h("dt", {}, title), h("dd", {}, String(value))));
    };
    const [label, prediction, confidence, cluster, outlier] = await Promise.all(
      ["label", "prediction", "confidence", "cluster", "outlier"].map((name) => session.value(name, series.row)),
    );
    const sure = typeof confidence === "number" ? ` (${Math.round(100 * confidence)} %)` : "";
    const time = await session.value("time", series.row);
    add("UTC", typeof time === "number" ? utc(time) : null);
    add("Group", series.group);
    add("Label", label);
    for (const { name } of session.about.value.stores) add(name, await session.value(`by ${name}`, series.row));
    add("Prediction", prediction === null ? null : `${prediction}${sure}`);
    add("Cluster", cluster);
    add("Outlier", typeof outlier === "number" ? number(outlier) : outlier);
    return h(
      "div",
      { class: "identity" },
      h(
        "div",
        { class: "identity-head" },
        this.swatch(series.row),
        h("strong", { class: "recording", title: series.recording ?? "" }, series.recording ?? `Window ${series.row}`),
        h("span", { class: "time" }, span(series)),
      ),
      list,
    );
  }

  /** The colour that a window has on the map. */
  private swatch(row: number): HTMLElement {
    const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
    const colouring = this.session.colouring.value;
    if (colouring !== null) {
      const index = colouring.indices[row];
      const none = index === NONE;
      const scale = colouring.column.kind !== "category" && !none;
      swatch.style.background = css(scale ? ramp(index / (NONE - 1), this.dark.value) : hue(none ? -1 : index, this.dark.value));
    }
    return swatch;
  }

  private step(row: number | null, before: number | null): void {
    if (before !== null) this.cards.get(before)?.classList.remove("stepped");
    if (row !== null) this.cards.get(row)?.classList.add("stepped");
  }
}

/** Takes over what another card says of the same window; its drawing stays, which takes longest. */
function retell(card: HTMLElement, other: HTMLElement): void {
  card.setAttribute("aria-label", other.getAttribute("aria-label") ?? "");
  card.firstElementChild?.replaceWith(other.firstElementChild as Element);
}

/** Shows drawings one in a frame: without a GPU they take a browser longer than all that is around them. */
function reveal(places: HTMLElement[]): void {
  const waiting = places.flatMap((place) => [...place.querySelectorAll<SVGElement>(".drawing")]);
  for (const drawing of waiting) drawing.style.visibility = "hidden";
  const next = (): void => {
    const drawing = waiting.shift();
    if (drawing === undefined) return;
    drawing.style.visibility = "";
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}

function join(one: Range, other: Range): Range {
  return { low: Math.min(one.low, other.low), high: Math.max(one.high, other.high) };
}
