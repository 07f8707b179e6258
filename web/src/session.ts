/** What the page knows and what its parts tell each other: pinned, selected, coloured, labelled. */

import { type Colouring, colouring } from "./colour";
import { Signal } from "./signal";
import type { Labels } from "./labels";
import type { About, Codes, Column, Doubts, Neighbours, Source, Suggestions, Verdict, Why } from "./source";
import { type Status, windows } from "./status";

export class Session {
  readonly about: Signal<About>;
  readonly hovered = new Signal<number | null>(null);
  readonly pinned = new Signal<number | null>(null);
  /** The pinned window once it is drawn, and null while it is not. */
  readonly drawn = new Signal<number | null>(null);
  /** How many answers are on their way that may show another window: suggestions, and labels taken back. */
  readonly awaited = new Signal(0);
  readonly neighbours = new Signal<number[]>([]);
  /** The neighbour that the arrow keys are at. */
  readonly stepped = new Signal<number | null>(null);
  /** What made the difference to the pinned window, once it was asked. */
  readonly why = new Signal<Why | null>(null);
  readonly selection = new Signal<number[]>([]);
  readonly colouring = new Signal<Colouring | null>(null);
  /** 1 for every window that the legend has switched off or a filter leaves out. */
  readonly hidden: Signal<Uint8Array>;
  readonly names = new Signal<string[]>([]);
  readonly labelled = new Signal<number[]>([]);
  readonly canUndo = new Signal(false);
  private readonly columns = new Map<string, Promise<Codes>>();
  private readonly near = new Map<number, Promise<Neighbours>>();
  private masks: { legend: Uint8Array | null; filters: Uint8Array | null } = { legend: null, filters: null };
  private wanted = "";
  private colourings = 0;
  private seeks = 0;
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    readonly source: Source,
    readonly status: Status,
    about: About,
  ) {
    this.about = new Signal(about);
    this.hidden = new Signal<Uint8Array>(new Uint8Array(about.n));
    this.pinned.listen(() => {
      this.seeks++;
      this.why.value = null;
    });
  }

  /** The pinned window, which keys and clicks act on: as long as it is on screen and nothing is loading. */
  get onScreen(): number | null {
    return this.awaited.value === 0 ? this.drawn.value : null;
  }

  /** Begins to look for a window to pin; the function it gives tells whether another was pinned or looked for since. */
  seek(): () => boolean {
    const turn = ++this.seeks;
    return () => turn !== this.seeks;
  }

  /** Leaves windows out: `mask` has 1 for each of them, and is null where there is none. */
  hide(who: "legend" | "filters", mask: Uint8Array | null): void {
    if (mask === this.masks[who]) return;
    this.masks = { ...this.masks, [who]: mask };
    const { legend, filters } = this.masks;
    const hidden = (legend ?? filters ?? new Uint8Array(this.about.value.n)).slice();
    if (legend !== null && filters !== null) for (let row = 0; row < hidden.length; row++) hidden[row] |= filters[row];
    this.hidden.value = hidden;
    const selected = this.selection.value.filter((row) => hidden[row] === 0);
    if (selected.length < this.selection.value.length) this.selection.value = selected;
  }

  /** What the legend, or the filters, leave out; null where nothing. */
  hides(who: "legend" | "filters"): Uint8Array | null {
    return this.masks[who];
  }

  /** The windows nearest to one, asked for once: they do not depend on labels. */
  neighboursOf(row: number, k: number): Promise<Neighbours> {
    let found = this.near.get(row);
    if (found === undefined) {
      found = this.source.neighbours(row, k);
      found.catch(() => this.near.delete(row)); // another try may succeed
      this.near.set(row, found);
    }
    return found;
  }

  column(name: string): Column | undefined {
    return this.about.value.columns.find((column) => column.name === name);
  }

  /** A column's codes or numbers, asked for once. */
  codes(column: Column): Promise<Codes> {
    let codes = this.columns.get(column.name);
    if (codes === undefined) {
      codes = this.source.column(column);
      codes.catch(() => this.columns.delete(column.name)); // another try may succeed
      this.columns.set(column.name, codes);
    }
    return codes;
  }

  /** What a column says of a window, or null where it says nothing. */
  async value(name: string, row: number): Promise<string | number | null> {
    const column = this.column(name);
    if (column === undefined) return null;
    const code = (await this.codes(column))[row];
    if (column.kind !== "category") return Number.isNaN(code) ? null : code;
    return column.categories?.[code] ?? null;
  }

  async colourBy(name: string): Promise<void> {
    const column = this.column(name);
    if (column === undefined) throw new Error(`There is no column “${name}” to colour by.`);
    this.wanted = name;
    const turn = ++this.colourings;
    const codes = await this.codes(column).catch((error: unknown) => {
      if (turn === this.colourings) this.wanted = this.colouring.value?.column.name ?? "";
      throw error;
    });
    if (turn !== this.colourings) return; // another choice was made in the meantime, or the column has changed
    if (this.colouring.value?.column.name !== name) this.hide("legend", null);
    this.colouring.value = colouring(column, codes);
  }

  async loadLabels(): Promise<void> {
    this.take(await this.source.labels());
  }

  /** Gives windows a label, or takes it away with null. */
  label(rows: number[], name: string | null, confirm = false): Promise<void> {
    return this.inOrder(() => this.labelNow(rows, name, confirm));
  }

  private async labelNow(rows: number[], name: string | null, confirm: boolean): Promise<void> {
    const most = this.about.value.limits.label_rows;
    if (rows.length > most) {
      throw new Error(`These are ${windows(rows.length)}; at most ${most.toLocaleString("en")} can be labelled at once. Select fewer.`);
    }
    this.take(await this.source.label(rows, name, confirm));
    await this.refresh(["label"]);
    this.status.say(name === null ? `Removed the label of ${windows(rows.length)}.` : `Labelled ${windows(rows.length)} “${name}”.`);
  }

  /** Changes labels in another way than by windows, in order with all else; the map follows. */
  change<T extends Labels>(action: () => Promise<T>): Promise<T> {
    return this.inOrder(async () => {
      try {
        const answer = await action();
        this.take(answer);
        return answer;
      } catch (error) {
        await this.loadLabels(); // somebody else may have changed them: that is then on screen
        throw error;
      } finally {
        await this.refresh(["label"]);
      }
    });
  }

  undo(): Promise<number[]> {
    return this.await(async () => {
      const answer = await this.source.undo();
      this.take(answer);
      await this.refresh(["label"]);
      const count = answer.undone.length;
      this.status.say(count === 0 ? (answer.any ? "Undone." : "There is nothing to undo.") : `Undone: the label of ${windows(count)} is as before.`);
      return answer.undone;
    });
  }

  /** What to label next, among the windows that are shown. */
  suggest(k: number): Promise<Suggestions | undefined> {
    const { hidden } = this;
    return this.await(async () => this.source.suggest?.(k, hidden.value.includes(1) ? hidden.value : null));
  }

  /** Labels that are probably wrong, among the windows that are shown. */
  doubts(): Promise<Doubts | undefined> {
    return this.await(async () => this.source.doubts?.());
  }

  /** A table of the selection, or of everything labelled where nothing is selected. */
  export(): Promise<{ table: Blob; count: number }> {
    const selected = this.selection.value;
    return this.inOrder(async () => {
      const rows = selected.length > 0 ? selected : [...this.labelled.value].sort((a, b) => a - b);
      if (rows.length === 0) throw new Error("There is nothing to export: select windows with the lasso, or label some.");
      return { table: await this.source.export(rows), count: rows.length };
    });
  }

  classify(): Promise<Verdict | undefined> {
    return this.inOrder(async () => {
      const verdict = await this.source.classify?.();
      await this.refresh(["prediction", "confidence"]);
      await this.colourBy("prediction");
      return verdict;
    });
  }

  /** What depends on the labels waits for what changes them: keys are quicker than answers. */
  private inOrder<T>(action: () => Promise<T>): Promise<T> {
    const turn = this.last.then(action, action);
    this.last = turn;
    return turn;
  }

  /** The same for what may show another window: nothing is labelled until the answer is there. */
  private await<T>(action: () => Promise<T>): Promise<T> {
    this.awaited.value++;
    return this.inOrder(action).finally(() => this.awaited.value--);
  }

  private take({ labels, names, can_undo }: Labels): void {
    this.labelled.value = Object.keys(labels).map(Number);
    this.names.value = names;
    this.canUndo.value = can_undo;
  }

  /** Asks again for columns that have changed. */
  private async refresh(names: string[]): Promise<void> {
    const stale = (name: string): boolean => names.includes(name) || name.startsWith("with "); // agreement with others
    for (const name of [...this.columns.keys()].filter(stale)) this.columns.delete(name);
    const about = await this.source.about();
    const { wanted } = this;
    this.about.value = about;
    if (wanted === "") return;
    if (this.column(wanted) === undefined) await this.colourBy(about.columns[0].name);
    else if (stale(wanted)) await this.colourBy(wanted);
  }
}
