/** The large view: a whole recording, in which ranges are labelled. */

import { h, need } from "../dom";
import type { Key } from "../keys";
import { KEYS, labeller } from "../labeller";
import type { Session } from "../session";
import type { Signal } from "../signal";
import type { Labels } from "../labels";
import type { Range } from "../strips";
import { readPlace, writePlace } from "./address";
import { clock, day } from "./axis";
import { type Chosen, type Desk, chosen, startHand } from "./hand";
import { type Layout, layout, paint } from "./painter";
import type { Along, RecordingName, RecordingSource, Run, Span } from "./source";
import { after, Tiles } from "./tiles";
import { View } from "./view";

const WIDTHS = 12; // of the pinned window, that are shown around it
const SAME = 2e-6; // seconds that two times may differ and be the same: the server rounds to millionths
const REST = 250; // milliseconds after which the address is written
const NOTHING: Along = { ranges: [], windows: [], predictions: [], segmented: true, least: null };
const HINT = "Drag over the recording, then press a label’s key.";

export class Reader {
  private readonly section = need("reader");
  private readonly canvas = h("canvas", {
    tabindex: 0,
    role: "application",
    "aria-label": "The recording. Drag to choose a range, number keys label it, question mark shows all keys.",
  });
  private readonly gutter = h("div", { class: "gutter" });
  private readonly hair = h("div", { class: "hair", hidden: true });
  private readonly body = h("div", { class: "reader-body" }, this.canvas, this.gutter, this.hair);
  private readonly choice = h("select", { "aria-label": "Recording", change: () => void this.show(Number(this.choice.value), null) });
  private readonly facts = h("span", { class: "reader-facts" });
  private readonly moment = h("output", { class: "reader-moment" });
  private readonly away = h("div", { class: "chips" });
  private readonly told = h("div", { class: "reader-told" });
  private readonly accepting = h("button", { type: "button", click: () => this.accept() }, h("kbd", {}, "a"), "Accept run");
  private readonly shortest = h("input", {
    type: "number",
    min: "0.01",
    step: "any",
    "aria-label": "Shortest prediction in seconds",
    change: () => void this.keepFrom(Number(this.shortest.value)),
  });
  private readonly shortestLine = h("label", { class: "reader-shortest", title: "Shorter predictions go to what is around them" }, "Shortest prediction", this.shortest, "s");
  /** Seconds that a prediction lasts at least, once somebody has said so. */
  private least: number | null = null;
  private recordings: RecordingName[] = [];
  private tiles: Tiles | null = null;
  private view: View | null = null;
  private number = -1;
  private along = NOTHING;
  private chosen: Chosen | null = null;
  private window: Span | null = null;
  private hovered: number | null = null;
  private hidden = new Set<string>();
  private scale = new Map<string, Range>();
  private at: Layout = layout(800, 400, false, false);
  private frame = 0;
  private writing = 0;
  private turn = 0;
  private changes = 0;

  constructor(
    private readonly session: Session,
    private readonly source: RecordingSource,
    private readonly dark: Signal<boolean>,
    private readonly undo: () => void,
  ) {
    const step = (by: number): void => void this.show((this.number + by + this.recordings.length) % this.recordings.length, null);
    const button = (name: string, title: string, run: () => void): HTMLElement =>
      h("button", { type: "button", class: "icon", title, "aria-label": title, click: run }, name);
    const menu = h(
      "details",
      { class: "menu" },
      h("summary", {}, "Export ranges"),
      h("button", { type: "button", class: "quiet", click: () => void this.export("csv") }, "Table (csv)"),
      h("button", { type: "button", class: "quiet", click: () => void this.export("json") }, "Label Studio (json)"),
    );
    menu.addEventListener("click", (event) => {
      if (event.target instanceof HTMLButtonElement) menu.open = false;
    });
    this.section.append(
      h(
        "div",
        { class: "reader-head" },
        h("button", { type: "button", id: "reader-close", click: () => this.close() }, "‹ Map"),
        h("span", { class: "reader-choice" }, button("‹", "Previous recording ([)", () => step(-1)), this.choice, button("›", "Next recording (])", () => step(1))),
        this.facts,
        this.away,
        this.moment,
        h("button", { type: "button", id: "reader-fit", title: "Scale the channels to what is on screen (f)", click: () => this.fit() }, "Fit"),
        button("+", "Closer (+)", () => this.zoom(1 / 1.6)),
        button("−", "Farther (-)", () => this.zoom(1.6)),
        button("⤢", "The whole recording (0)", () => this.whole()),
        menu,
      ),
      this.body,
      h("div", { class: "reader-foot" }, this.told, labeller(session, (name) => this.give(name)), this.accepting, this.shortestLine),
    );
    startHand(this.canvas, () => this.desk());
    new ResizeObserver(() => this.draw()).observe(this.body);
    addEventListener("pagehide", () => this.write());
    dark.listen(() => this.draw());
    session.about.listen(() => void this.reload()); // after every change of labels or predictions, here or elsewhere
    this.keys = this.table(step);
  }

  readonly keys: Key[];

  get open(): boolean {
    return !this.section.hidden;
  }

  /** Opens the recording of the pinned window, or the one that was open before. */
  async enter(): Promise<void> {
    const row = this.session.pinned.value;
    await this.session.status.attempt(async () => {
      if (row === null) {
        await this.show(Math.max(0, this.number), null);
        return;
      }
      const [one] = await this.session.source.series([row]);
      if (typeof one.start !== "number" || typeof one.end !== "number") return;
      const window = { start: one.start, end: one.end };
      const [middle, wide] = [(window.start + window.end) / 2, WIDTHS * (window.end - window.start)];
      await this.show(one.recording ?? "", { start: middle - wide / 2, end: middle + wide / 2 }, window);
    });
  }

  /** Goes back to what the address says, if it says anything. */
  async restore(): Promise<void> {
    const place = readPlace();
    if (place === null) return;
    this.hidden = new Set(place.hidden);
    this.scale = place.scale;
    const { from, to } = place;
    await this.show(place.recording, from !== null && to !== null ? { start: from, end: to } : null);
  }

  close(): void {
    this.turn++;
    this.section.hidden = true;
    document.querySelector(".foot")?.append(need("status"));
    clearTimeout(this.writing);
    writePlace(null);
    need("map").focus({ preventScroll: true });
  }

  /** Where a time is drawn, in pixels of the browser window; for tests. */
  screen(time: number): { x: number; labels: number; predictions: number } {
    const box = this.canvas.getBoundingClientRect();
    const [labels, predictions] = [this.at.labels, this.at.predictions].map(([top, bottom]) => box.y + (top + bottom) / 2);
    return { x: box.x + (this.view?.pixel(time, this.at) ?? 0), labels, predictions };
  }

  private async show(which: number | string, span: Span | null, window: Span | null = null): Promise<void> {
    const turn = ++this.turn;
    const { status } = this.session;
    await status.attempt(async () => {
      if (this.recordings.length === 0) {
        this.recordings = await this.source.all();
        const option = ({ name, lost }: RecordingName, i: number): HTMLElement => h("option", { value: i, disabled: lost }, name);
        this.choice.replaceChildren(...this.recordings.map(option));
      }
      const number = typeof which === "number" ? which : this.recordings.findIndex(({ name }) => name === which);
      if (number < 0) throw new Error(`There is no recording “${which}” here. Choose another.`);
      const { name } = this.recordings[number];
      const timer = later(() => status.busy(`Reading ${name} …`));
      try {
        const [about, along] = await Promise.all([this.source.about(number), this.source.along(number, this.least)]);
        const tiles = new Tiles(this.source, number, about, () => this.draw(), (error) => status.fail(error));
        await tiles.begin();
        if (turn !== this.turn) return; // closed, or another was opened in the meantime
        [this.tiles, this.number, this.along, this.window] = [tiles, number, along, window];
        this.view = new View(about);
        if (span !== null) this.view.show(span.start, span.end);
      } finally {
        clearTimeout(timer);
      }
      const { about } = this.tiles;
      this.choice.value = String(number);
      const rate = about.rate === null ? "" : ` · ${Number(about.rate.toPrecision(4))} Hz`;
      this.facts.textContent = `${length(about.end - about.start)}${rate}`;
      this.section.hidden = false;
      this.section.append(need("status"));
      this.choose(null);
      this.canvas.focus({ preventScroll: true });
      status.say(`${name}: wheel or + and - zoom, ← and → move, drag to choose a range, ? for keys.`);
    });
  }

  private async reload(): Promise<void> {
    const { number } = this;
    const turn = ++this.changes;
    if (!this.open) return;
    const along = await this.session.status.attempt(() => this.source.along(number, this.least));
    if (along === undefined || number !== this.number || turn !== this.changes) return; // a later answer is on its way
    this.along = along;
    const { chosen: now } = this;
    if (now !== null && now.kind !== "draft") {
      const lane = now.kind === "range" ? along.ranges : along.predictions;
      const same = lane.find(([start, end]) => start === now.start && end === now.end);
      this.chosen = same === undefined ? null : chosen(same, now.kind);
    }
    this.choose(this.chosen);
  }

  /** Shows predictions that last so many seconds or more; nothing typed means the usual length. */
  private async keepFrom(seconds: number): Promise<void> {
    this.least = seconds > 0 ? seconds : null;
    await this.reload();
    if (this.along.least !== null) this.session.status.say(`Predictions last ${number(this.along.least)} s or more.`);
  }

  private desk(): Desk | null {
    const { view, tiles } = this;
    if (view === null || tiles === null || !this.open) return null;
    return {
      view,
      at: this.at,
      along: this.along,
      chosen: this.chosen,
      whole: tiles.about,
      draw: () => this.draw(),
      choose: (one) => this.choose(one),
      move: (before, span) => void this.change(before, span, before.label),
      hover: (time) => this.hover(time),
      scale: (y, factor) => this.stretch(this.shown()[Math.floor((y / this.at.channels) * this.shown().length)], factor),
    };
  }

  private choose(one: Chosen | null): void {
    this.chosen = one;
    const words = one === null ? HINT : `${number(one.start)}–${number(one.end)} s · ${number(one.end - one.start)} s`;
    const kind = { draft: "", range: "", run: this.along.segmented ? "" : "predicted " };
    this.told.replaceChildren(h("span", { class: one === null ? "hint" : "reader-span" }, words));
    if (one?.label) this.told.append(h("strong", {}, `${kind[one.kind]}${one.label}`));
    this.accepting.hidden = this.shortestLine.hidden = this.along.segmented;
    if (this.along.least !== null && document.activeElement !== this.shortest) this.shortest.value = number(this.along.least);
    this.draw();
  }

  /** Labels what is chosen, or takes its label away. */
  private give(name: string | null): boolean {
    const one = this.chosen;
    if (one === null) {
      this.session.status.say(HINT);
      return false;
    }
    if (name !== null) void this.change(one.kind === "range" ? one : null, one, name);
    else if (one.kind === "range") void this.change(one, null, null);
    else this.choose(null);
    return true;
  }

  private async change(before: Chosen | null, after: Span | null, label: string | null): Promise<void> {
    const { session, source, number } = this;
    const over = after === null ? null : this.labelAt(after);
    const ranges = this.along.ranges.filter(([start, end]) => start !== before?.start || end !== before.end);
    if (after !== null && label !== null) ranges.push([after.start, after.end, label]);
    this.changes++;
    this.along = { ...this.along, ranges }; // at once; the answer may cut it to the recording
    this.choose(after === null || label === null ? null : chosen([after.start, after.end, label], "range"));
    const seen = before && { start: before.start, end: before.end, label: before.label ?? "" };
    const place = after && { start: after.start, end: after.end };
    const change = (): Promise<Labels & Along> => source.change(number, seen, place, label, over);
    const answer = await session.status.attempt(async () => {
      try {
        return await session.change(change);
      } catch (error) {
        await this.reload(); // what went wrong is said when the ranges are on screen as they are
        throw error;
      }
    });
    if (answer === undefined) return;
    if (after === null) session.status.say(`Removed the label of ${said(before as Span)}.`);
    else if (before?.label === label) session.status.say(`Moved “${label}” to ${said(after)}.`);
    else session.status.say(`Labelled ${said(after)} “${label}”.`);
  }

  /** The label of the range that lies at exactly this place, if there is one. */
  private labelAt({ start, end }: Span): string | null {
    const about = this.tiles?.about;
    const [first, last] = about === undefined ? [start, end] : [Math.max(start, about.start), Math.min(end, about.end)];
    const same = (one: number, other: number): boolean => Math.abs(one - other) < SAME;
    const found = this.along.ranges.findLast((run) => same(run[0], first) && same(run[1], last));
    return found === undefined ? null : found[2];
  }

  /** Makes a range of the run of equal predictions that is chosen or under the pointer, and goes on to the next. */
  private accept(): void {
    const runs = this.along.predictions;
    if (this.along.segmented) {
      this.session.status.say("There are no predictions yet: label some segments, then train a classifier.");
      return;
    }
    const under = (run: Run): boolean => this.hovered !== null && run[0] <= this.hovered && this.hovered < run[1];
    const own = this.chosen?.kind === "run" ? this.chosen : null;
    const place = own !== null ? runs.findIndex(([start]) => start === own.start) : runs.findIndex(under);
    if (place < 0) {
      this.next(1);
      return;
    }
    const [start, end, name] = runs[place];
    void this.change(null, { start, end }, name);
    this.chosen = chosen(runs[place], "run");
    this.next(1);
  }

  /** Chooses the next run of predictions, or where there are none the next range. */
  private next(by: number): void {
    const kind = this.along.predictions.length > 0 ? "run" : "range";
    const lane = [...(kind === "run" ? this.along.predictions : this.along.ranges)].sort((a, b) => a[0] - b[0]);
    if (lane.length === 0 || this.view === null) return;
    const starts = lane.map(([start]) => start);
    const from = this.chosen?.start ?? this.view.start;
    const place = by > 0 ? after(starts, from) - Number(this.chosen === null && starts.includes(from)) : after(starts, from) - 2;
    if (place < 0 || place >= lane.length) return;
    const one = chosen(lane[place], kind);
    this.view.reveal(one);
    this.choose(one);
  }

  private hover(time: number | null): void {
    this.hovered = time;
    const { view, tiles } = this;
    this.hair.hidden = time === null;
    if (time === null || view === null || tiles === null) {
      this.moment.textContent = "";
      return;
    }
    this.hair.style.transform = `translateX(${view.pixel(time, this.at)}px)`;
    this.hair.style.height = `${this.at.axis[0]}px`;
    const { origin } = tiles.about;
    const each = view.length / (this.at.right - this.at.left);
    const date = origin === null ? "" : ` · ${day(origin + time)} ${clock(origin + time, Math.min(1, each))} UTC`;
    this.moment.textContent = `${number(time)} s${date}`;
  }

  private shown(): number[] {
    const names = this.tiles?.about.channels ?? [];
    return names.map((_, i) => i).filter((i) => !this.hidden.has(names[i]));
  }

  private range(channel: number): Range {
    const { channels, low, high, offset } = (this.tiles as Tiles).about;
    const own = this.scale.get(channels[channel]);
    if (own !== undefined) return own;
    const [from, to] = [low[channel] + offset[channel], high[channel] + offset[channel]];
    return from < to ? { low: from, high: to } : { low: from - 1, high: to + 1 };
  }

  private stretch(channel: number, factor: number): void {
    const { low, high } = this.range(channel);
    const [middle, half] = [(low + high) / 2, ((high - low) / 2) * factor];
    const name = this.tiles?.about.channels[channel] ?? "";
    const short = (value: number): number => Number(value.toPrecision(6));
    this.scale.set(name, { low: short(middle - half), high: short(middle + half) });
    this.draw();
  }

  private rescale(name: string): void {
    this.scale.delete(name);
    this.draw();
  }

  private hide(name: string, away: boolean): void {
    if (away) this.hidden.add(name);
    else this.hidden.delete(name);
    this.draw();
  }

  /** Scales every channel to what is on screen. */
  private fit(): void {
    const { view, tiles } = this;
    if (view === null || tiles === null) return;
    const parts = tiles.parts(view.start, view.end, this.at.right - this.at.left);
    for (const channel of this.shown()) {
      let [low, high] = [Infinity, -Infinity];
      for (const { tile, start, end } of parts) {
        for (let i = Math.max(start, after(tile.last, view.start)); i < Math.min(end, after(tile.first, view.end)); i++) {
          if (tile.low[channel][i] < low) low = tile.low[channel][i];
          if (tile.high[channel][i] > high) high = tile.high[channel][i];
        }
      }
      const from = tiles.about.offset[channel];
      if (low < high) this.scale.set(tiles.about.channels[channel], { low: low + from, high: high + from });
    }
    this.draw();
  }

  private zoom(factor: number): void {
    const { view } = this;
    if (view === null) return;
    const middle = this.hovered ?? (view.start + view.end) / 2;
    view.zoom(factor, Math.min(view.end, Math.max(view.start, middle)));
    this.draw();
  }

  private pan(share: number): void {
    this.view?.pan(share * this.view.length);
    this.draw();
  }

  private whole(): void {
    const about = this.tiles?.about;
    if (about !== undefined) this.view?.show(about.start, about.end);
    this.scale.clear();
    this.draw();
  }

  private draw(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.drawNow());
  }

  private drawNow(): void {
    this.frame = 0;
    const { view, tiles, canvas } = this;
    if (view === null || tiles === null || !this.open) return;
    const { about } = tiles;
    const [width, height] = [this.body.clientWidth, this.body.clientHeight];
    const [wide, tall] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
    if (canvas.width !== wide || canvas.height !== tall) [canvas.width, canvas.height] = [wide, tall];
    this.at = layout(width, height, about.origin !== null, this.along.predictions.length > 0);
    const context = canvas.getContext("2d");
    if (context === null) return;
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    const names = this.session.column("label")?.categories ?? this.session.column("prediction")?.categories ?? [];
    const scene = {
      about,
      start: view.start,
      end: view.end,
      parts: tiles.parts(view.start, view.end, (this.at.right - this.at.left) * devicePixelRatio),
      shown: this.shown(),
      scale: about.channels.map((_, channel) => this.range(channel)),
      along: this.along,
      window: this.window,
      chosen: this.chosen,
      code: (name: string) => names.indexOf(name),
      dark: this.dark.value,
    };
    paint(context, scene, this.at);
    this.drawGutter(scene.shown);
    clearTimeout(this.writing);
    this.writing = later(() => this.write());
  }

  private write(): void {
    const { view } = this;
    if (view === null || !this.open) return;
    const short = (time: number): number => Number(time.toFixed(6));
    const [from, to] = [short(view.start), short(view.end)];
    writePlace({ recording: this.recordings[this.number].name, from, to, hidden: [...this.hidden], scale: this.scale });
  }

  /** Names, units and buttons of the channels, which are made anew only where they have changed. */
  private drawGutter(shown: number[]): void {
    const { channels, units } = (this.tiles as Tiles).about;
    const each = this.at.channels / Math.max(1, shown.length);
    const key = JSON.stringify([shown, channels, Math.round(each), [...this.hidden]]);
    if (this.gutter.dataset.key === key) return;
    this.gutter.dataset.key = key;
    const button = (text: string, title: string, run: () => void): HTMLElement =>
      h("button", { type: "button", title, "aria-label": title, click: run }, text);
    this.gutter.replaceChildren(
      ...shown.map((channel, place) => {
        const name = channels[channel];
        const tools = h(
          "span",
          { class: "gutter-tools" },
          button("+", `Draw ${name} larger`, () => this.stretch(channel, 1 / 1.5)),
          button("−", `Draw ${name} smaller`, () => this.stretch(channel, 1.5)),
          button("×", `Hide ${name}`, () => this.hide(name, true)),
        );
        const row = h(
          "div",
          { class: "gutter-row", "data-channel": name, dblclick: () => this.rescale(name) },
          h("span", { class: "gutter-name", title: `${name}: the wheel scales it, a double click takes that back` }, name),
          units[channel] !== "" && h("span", { class: "gutter-unit" }, units[channel]),
          shown.length > 1 || each > 40 ? tools : null,
        );
        row.style.top = `${place * each}px`;
        row.style.height = `${each}px`;
        return row;
      }),
    );
    const back = (name: string): HTMLElement =>
      h(
        "button",
        {
          type: "button",
          class: "chip",
          title: `Show ${name}`,
          click: () => this.hide(name, false),
        },
        "+ ",
        name,
      );
    this.away.replaceChildren(...channels.filter((name) => this.hidden.has(name)).map(back));
  }

  private async export(form: "csv" | "json"): Promise<void> {
    const { status } = this.session;
    await status.attempt(async () => {
      const address = URL.createObjectURL(await this.source.export(form));
      const name = form === "csv" ? "ranges.csv" : "label-studio.json";
      h("a", { href: address, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
      status.say(`Exported the labels of all recordings to ${name}.`);
    });
  }

  private table(step: (by: number) => void): Key[] {
    const { session } = this;
    const digits = Array.from({ length: KEYS }, (_, i) => String(i + 1));
    const labelBy = (event: KeyboardEvent): void => {
      const name = session.names.value[Number(event.key) - 1];
      if (name === undefined) session.status.say(`There is no label ${event.key} yet: press n and name one.`);
      else this.give(name);
    };
    const back = (): void => {
      if (document.activeElement instanceof HTMLInputElement) this.canvas.focus({ preventScroll: true });
      else if (this.chosen !== null) this.choose(null);
      else this.close();
    };
    return [
      { keys: digits, shown: "1 … 9", does: "label the range that is chosen", run: labelBy },
      { keys: ["n"], shown: "n", does: "name a new label", run: () => this.section.querySelector<HTMLInputElement>(".new-name")?.focus() },
      { keys: ["Delete", "Backspace"], shown: "Del", does: "take the label of the range away", run: () => this.give(null) },
      { keys: ["a"], shown: "a", does: "accept the run of predictions that is chosen, or under the pointer", run: () => this.accept() },
      { keys: ["ArrowDown"], shown: "↓", does: "next run of predictions, or next range", run: () => this.next(1) },
      { keys: ["ArrowUp"], shown: "↑", does: "previous run or range", run: () => this.next(-1) },
      { keys: ["u", "Ctrl+z"], shown: "u Ctrl+z", does: "undo the last labels", run: () => this.undo() },
      { keys: ["ArrowLeft"], shown: "←", does: "back in time (Shift: a whole screen)", run: () => this.pan(-0.15) },
      { keys: ["ArrowRight"], shown: "→", does: "on in time (Shift: a whole screen)", run: () => this.pan(0.15) },
      { keys: ["Shift+ArrowLeft"], shown: "", does: "", run: () => this.pan(-1) },
      { keys: ["Shift+ArrowRight"], shown: "", does: "", run: () => this.pan(1) },
      { keys: ["+", "="], shown: "+", does: "closer", run: () => this.zoom(1 / 1.6) },
      { keys: ["-"], shown: "-", does: "farther", run: () => this.zoom(1.6) },
      { keys: ["0"], shown: "0", does: "the whole recording, channels as they were", run: () => this.whole() },
      { keys: ["f"], shown: "f", does: "fit the channels to what is on screen", run: () => this.fit() },
      { keys: ["["], shown: "[ ]", does: "previous and next recording", run: () => step(-1) },
      { keys: ["]"], shown: "", does: "", run: () => step(1) },
      { keys: ["Escape"], shown: "Esc", does: "let go of the range, then back to the map", run: back },
    ];
  }
}

function later(run: () => void): number {
  return window.setTimeout(run, REST);
}

function number(value: number): string {
  return String(Number(value.toFixed(3)));
}

function said({ start, end }: Span): string {
  return `${number(start)} to ${number(end)} s`;
}

/** "12 s", "5 min 20 s", "2 h 40 min" */
function length(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${number(seconds)} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.round((whole % 3600) / 60)} min`;
}
