/** All windows that are shown as rows below the map. Only the rows in view are in the page, however many there are. */

import { h, need } from "./dom";
import { show } from "./format";
import type { Memory } from "./memory";
import { sorted } from "./order";
import type { Session } from "./session";
import type { Codes, Column } from "./source";
import { windows } from "./status";

const HEIGHT = 24; // pixels of a row
const TALLEST = 8e6; // pixels that every browser can scroll over
const SPARE = 4; // rows drawn beyond each end
const FIRST = ["recording", "time", "start", "group", "label"];

type Sort = { name: string; descending: boolean } | null;

export class Table {
  private readonly place = need("table");
  private readonly head = need("table-head");
  private readonly scroller = need("table-rows");
  private readonly space = need("table-space");
  private readonly body = need("table-body");
  private columns: Column[] = [];
  private codes: Codes[] = [];
  /** The rows that are shown, in the order of the table. */
  private rows: Uint32Array = new Uint32Array();
  private sort: Sort;
  /** All windows by the column that they are sorted by. */
  private order: { keys: Codes; rows: Uint32Array } | null = null;
  /** Where a selection by Shift begins. */
  private anchor = 0;
  private scheduled = false;
  private turn = 0;

  constructor(
    private readonly session: Session,
    private readonly memory: Memory,
  ) {
    this.sort = memory.last.sort ?? null;
    need("show-table").addEventListener("click", () => this.toggle());
    need("table-close").addEventListener("click", () => this.toggle());
    this.scroller.addEventListener("scroll", () => this.redraw());
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.click(event));
    this.body.addEventListener("pointermove", (event) => (session.hovered.value = rowOf(event)));
    this.body.addEventListener("pointerleave", () => (session.hovered.value = null));
    new ResizeObserver(() => this.redraw()).observe(this.scroller);
    session.hidden.listen(() => requestAnimationFrame(() => this.arrange())); // a frame after the map
    session.about.listen(() => this.load());
    session.selection.listen(() => this.redraw());
    session.pinned.listen((row) => {
      if (row !== null) this.reveal(row);
      requestAnimationFrame(() => this.redraw()); // a frame after the map
    });
    if (memory.last.table === true) this.toggle();
  }

  get open(): boolean {
    return !this.place.hidden;
  }

  toggle(): void {
    this.place.hidden = !this.place.hidden;
    need("stage").classList.toggle("tabled", this.open);
    need("show-table").setAttribute("aria-pressed", String(this.open));
    this.memory.keep({ table: this.open });
    this.load();
  }

  /** Asks for what has changed and draws the same rows again. */
  private load(): void {
    if (!this.open) return;
    const turn = ++this.turn;
    void this.session.status.attempt(async () => {
      const place = (name: string): number => (FIRST.indexOf(name) + FIRST.length + 1) % (FIRST.length + 1);
      const columns = [...this.session.about.value.columns].sort((a, b) => place(a.name) - place(b.name));
      const codes = await Promise.all(columns.map((column) => this.session.codes(column)));
      if (turn !== this.turn) return;
      const fresh = this.codes.length === 0;
      [this.columns, this.codes] = [columns, codes];
      const widths = columns.map(({ name, kind }) => (kind === "time" ? 150 : name === "recording" ? 130 : kind === "category" ? 88 : 104));
      this.place.style.setProperty("--columns", `64px ${widths.map((width) => `minmax(${width}px, ${width}fr)`).join(" ")}`);
      this.place.style.setProperty("--wide", `${widths.reduce((sum, width) => sum + width, 64)}px`);
      this.titles();
      if (fresh) this.arrange(); // else rows stay where they are, also when the label that they are sorted by changes
      else this.redraw();
    });
  }

  private titles(): void {
    const made = this.columns.map(({ name, title, kind }) => {
      const now = this.sort?.name === name ? (this.sort.descending ? "descending" : "ascending") : "none";
      const arrow = { ascending: "↑", descending: "↓", none: "" }[now];
      const button = h("button", { type: "button", class: "quiet", title: `Sort by ${title}`, "data-column": name, click: () => this.sortBy(name) }, h("span", {}, title), arrow);
      return h("div", { role: "columnheader", "aria-sort": now, class: kind === "category" ? "cell" : "cell right" }, button);
    });
    const held = document.activeElement?.getAttribute("data-column");
    this.head.replaceChildren(h("div", { role: "columnheader", class: "cell right" }, "row"), ...made);
    if (held) this.head.querySelector<HTMLElement>(`[data-column="${CSS.escape(held)}"]`)?.focus();
  }

  /** Upwards, downwards, and then as the file has them. */
  private sortBy(name: string): void {
    if (this.sort?.name !== name) this.sort = { name, descending: false };
    else this.sort = this.sort.descending ? null : { name, descending: true };
    this.memory.keep({ sort: this.sort });
    this.titles();
    this.arrange();
    this.scroller.scrollTop = 0;
  }

  /** Puts the windows that are shown in order; where only the filters have changed, the order is known. */
  private arrange(): void {
    if (!this.open || this.codes.length === 0) return;
    const hidden = this.session.hidden.value;
    const n = hidden.length;
    const at = this.columns.findIndex(({ name }) => name === this.sort?.name);
    const keys = at < 0 ? null : this.codes[at];
    if (this.order?.keys !== keys) this.order = keys === null ? null : { keys, rows: sorted(this.ranks(at)) };
    const order = this.order?.rows ?? null;
    const down = order !== null && (this.sort?.descending ?? false);
    const rows = new Uint32Array(n);
    let count = 0;
    const known = down && keys !== null ? this.known(keys, at) : n;
    for (let i = 0; i < n; i++) {
      const place = down && i < known ? known - 1 - i : i; // what has no value stays at the end
      const row = order === null ? place : order[place];
      if (hidden[row] === 0) rows[count++] = row;
    }
    this.rows = rows.subarray(0, count);
    this.anchor = 0;
    this.space.style.height = `${Math.min(TALLEST, count * HEIGHT)}px`;
    need("table-count").textContent = windows(count);
    this.scroller.setAttribute("aria-rowcount", String(count));
    this.redraw();
  }

  /** How many windows have a value. */
  private known(keys: Codes, at: number): number {
    const category = this.columns[at].kind === "category";
    let count = 0;
    for (let row = 0; row < keys.length; row++) if (category ? keys[row] >= 0 : !Number.isNaN(keys[row])) count++;
    return count;
  }

  /** Numbers that sort as a column does: names in the order of people, "a 2" before "a 10". */
  private ranks(at: number): ArrayLike<number> {
    const { kind, categories } = this.columns[at];
    const codes = this.codes[at];
    if (kind !== "category") return codes;
    const names = categories ?? [];
    const collator = new Intl.Collator("en", { numeric: true });
    const places = new Float64Array(names.length);
    [...names.keys()].sort((a, b) => collator.compare(names[a], names[b])).forEach((code, place) => (places[code] = place));
    const ranks = new Float64Array(codes.length);
    for (let row = 0; row < codes.length; row++) ranks[row] = codes[row] < 0 ? Number.NaN : places[codes[row]];
    return ranks;
  }

  /** How many rows a scrolled pixel moves: more than 1 / HEIGHT where the browser cannot scroll over all of them. */
  private get pace(): number {
    const room = Math.max(1, Math.min(TALLEST, this.rows.length * HEIGHT) - this.scroller.clientHeight);
    return Math.max(0, this.rows.length - this.scroller.clientHeight / HEIGHT) / room;
  }

  private redraw(): void {
    if (this.scheduled || !this.open) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.draw();
    });
  }

  private draw(): void {
    const { scrollTop, clientHeight } = this.scroller;
    const top = scrollTop * this.pace;
    const first = Math.max(0, Math.floor(top) - SPARE);
    const end = Math.min(this.rows.length, Math.ceil(top + clientHeight / HEIGHT) + SPARE);
    const { selection, pinned } = this.session;
    const selected = new Set(selection.value);
    const lines: HTMLElement[] = [];
    for (let at = first; at < end; at++) {
      const row = this.rows[at];
      const cells = this.columns.map((column, i) => {
        const code = this.codes[i][row];
        if (column.kind === "category") return h("div", { role: "gridcell", class: "cell" }, column.categories?.[code] ?? "");
        return h("div", { role: "gridcell", class: "cell right" }, Number.isNaN(code) ? "" : show(column, code));
      });
      const looks = `line${row === pinned.value ? " pinned" : ""}${selected.has(row) ? " selected" : ""}`;
      const held = row === pinned.value || selected.has(row);
      lines.push(
        h("div", { role: "row", class: looks, "data-row": row, "data-at": at, "aria-rowindex": at + 1, "aria-selected": String(held) }, h("div", { role: "gridcell", class: "cell right dim" }, String(row)), ...cells),
      );
    }
    this.body.style.transform = `translateY(${scrollTop + (first - top) * HEIGHT}px)`;
    this.body.replaceChildren(...lines);
  }

  /** Brings a row into view. */
  private reveal(row: number): void {
    const at = this.open ? this.rows.indexOf(row) : -1;
    if (at < 0) return;
    const top = this.scroller.scrollTop * this.pace;
    const seen = this.scroller.clientHeight / HEIGHT;
    if (at < top) this.scroller.scrollTop = at / this.pace;
    else if (at + 1 > top + seen) this.scroller.scrollTop = (at + 1 - seen) / this.pace;
  }

  private click(event: MouseEvent): void {
    const row = rowOf(event);
    if (row === null) return;
    const { selection, pinned } = this.session;
    const at = this.rows.indexOf(row);
    if (event.shiftKey) {
      getSelection()?.removeAllRanges(); // the browser's own, of text
      const [from, to] = [Math.min(at, this.anchor), Math.max(at, this.anchor)];
      selection.value = [...this.rows.subarray(from, to + 1)];
      return;
    }
    this.anchor = at;
    if (event.ctrlKey || event.metaKey) {
      const { value } = selection;
      selection.value = value.includes(row) ? value.filter((one) => one !== row) : [...value, row];
    } else {
      pinned.value = pinned.value === row ? null : row;
    }
  }

  /** Up and down pin the next window; all other keys are the page's. */
  private key(event: KeyboardEvent): void {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by === undefined || event.shiftKey || this.rows.length === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const pinned = this.session.pinned.value;
    const at = pinned === null ? -1 : this.rows.indexOf(pinned);
    const first = Math.floor(this.scroller.scrollTop * this.pace);
    this.session.pinned.value = this.rows[at < 0 ? first : Math.min(this.rows.length - 1, Math.max(0, at + by))];
  }
}

function rowOf(event: Event): number | null {
  const line = (event.target as HTMLElement).closest<HTMLElement>(".line");
  return line === null ? null : Number(line.dataset.row);
}
