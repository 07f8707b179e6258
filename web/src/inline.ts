/** A page that holds its data as a source: what `dicot explore --export` writes. */

import type { Labels } from "./labels";
import type { About, Codes, Column, Neighbours, Series, Source, Time, Window } from "./source";

const NEIGHBOURS = 8;

export interface Inline {
  about: About;
  points: string;
  columns: Record<string, string>;
  /** Levels from 0 at the low end of a channel's scale, window by window, channel by channel. */
  series: { points: number; scale: [number, number][]; data: string; missing?: number } | null;
  rows: Window[];
  neighbours: string;
}

/** What the page holds, or null for a page that a server sent. */
export function readInline(): Inline | null {
  const element = document.getElementById("dicot-inline");
  return element === null ? null : (JSON.parse(element.textContent) as Inline);
}

function bytes(base64: string): ArrayBuffer {
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out.buffer;
}

/** Labels live in the page until they are exported; context, suggestions and classifier need the server. */
export class InlineSource implements Source {
  private readonly values: Uint8Array;
  private readonly near: Int32Array;
  private readonly given = new Map<number, string>();
  /** What the windows of each call had before, and how many names there were. */
  private readonly history: { before: [number, string | undefined][]; names: number }[] = [];

  /** Every name in the order of its number key. */
  private readonly names: string[];

  constructor(private readonly page: Inline) {
    const known = page.about.columns.find((column) => column.name === "label")?.categories ?? [];
    this.names = [...new Set([...page.about.labels, ...known])];
    this.values = page.series === null ? new Uint8Array() : new Uint8Array(bytes(page.series.data));
    this.near = new Int32Array(bytes(page.neighbours));
    page.rows.forEach((window, row) => {
      if (window.label !== null) this.given.set(row, window.label);
    });
  }

  /** Whether there are labels that would be lost with the page. */
  get unsaved(): boolean {
    return this.history.length > 0;
  }

  async about(): Promise<About> {
    const { about } = this.page;
    const others = about.columns.filter((column) => column.name !== "label");
    const label: Column = { name: "label", title: "Label", kind: "category", categories: this.names };
    return {
      ...about,
      series: this.page.series !== null,
      labels: this.names,
      columns: [label, ...others],
    };
  }

  async points(): Promise<Float32Array> {
    return new Float32Array(bytes(this.page.points));
  }

  async column(column: Column): Promise<Codes> {
    if (column.name === "label") {
      const codes = new Map(this.names.map((name, code) => [name, code]));
      return Int32Array.from(this.page.rows, (_, row) => codes.get(this.given.get(row) ?? "") ?? -1);
    }
    const data = bytes(this.page.columns[column.name] ?? "");
    return column.kind === "category" ? new Int32Array(data) : new Float64Array(data);
  }

  async series(rows: number[]): Promise<Series[]> {
    return rows.map((row) => ({ row, ...this.window(row), channels: this.channels(row) }));
  }

  async neighbours(row: number, k: number): Promise<Neighbours> {
    const rows = [...this.near.slice(row * NEIGHBOURS, (row + 1) * NEIGHBOURS)];
    return { rows: rows.filter((other) => other >= 0).slice(0, k), distances: null };
  }

  async find(recording: string, time: string): Promise<number> {
    const windows = this.page.rows;
    const asked = windows.map((_, row) => row).filter((row) => windows[row].recording === recording);
    if (asked.length === 0) throw new Error(`No window comes from a recording “${recording}”.`);
    const wanted = instant(time);
    if (Number.isNaN(wanted)) throw new Error(`“${time}” is no time: write seconds or a date as the recording has it.`);
    // As the server has it: of several windows that hold the time, the one whose middle is nearest.
    let best: number | undefined;
    let least = Infinity;
    for (const row of asked) {
      const [start, end] = [instant(windows[row].start), instant(windows[row].end)];
      const off = Math.abs((start + end) / 2 - wanted);
      if (start <= wanted && wanted < end && off < least) [best, least] = [row, off];
    }
    if (best === undefined) throw new Error(`No window of “${recording}” lies at ${time}.`);
    return best;
  }

  async labels(): Promise<Labels> {
    const labels = Object.fromEntries([...this.given].map(([row, name]) => [String(row), name]));
    return { labels, names: [...this.names], can_undo: this.unsaved };
  }

  async label(rows: number[], name: string | null): Promise<Labels> {
    this.history.push({ before: rows.map((row) => [row, this.given.get(row)]), names: this.names.length });
    for (const row of rows) this.set(row, name ?? undefined);
    if (name !== null && !this.names.includes(name)) this.names.push(name);
    return this.labels();
  }

  async undo(): Promise<Labels & { undone: number[] }> {
    const { before, names } = this.history.pop() ?? { before: [], names: this.names.length };
    for (const [row, name] of before) this.set(row, name);
    this.names.length = names;
    return { ...(await this.labels()), undone: before.map(([row]) => row) };
  }

  async export(rows: number[]): Promise<Blob> {
    const lines = rows.map((row) => {
      const { recording, start, end, group, label } = this.window(row);
      return [row, recording, start, end, group, label].map(cell).join(",");
    });
    return new Blob([["row,recording,start,end,group,label", ...lines].join("\r\n"), "\r\n"], { type: "text/csv" });
  }

  private set(row: number, name: string | undefined): void {
    if (name === undefined) this.given.delete(row);
    else this.given.set(row, name);
  }

  private window(row: number): Window {
    return { ...this.page.rows[row], label: this.given.get(row) ?? null };
  }

  private channels(row: number): (number | null)[][] {
    if (this.page.series === null) return [];
    const { points, scale, missing } = this.page.series;
    const top = missing === undefined ? 255 : missing - 1;
    return scale.map(([low, high], channel) => {
      const first = (row * scale.length + channel) * points;
      const value = (level: number): number | null => (level === missing ? null : low + ((high - low) * level) / top);
      return Array.from(this.values.subarray(first, first + points), value);
    });
  }
}

/** A time as a number that can be compared: seconds, or a date; NaN where there is none. */
function instant(time: Time | null): number {
  const seconds = Number(time ?? Number.NaN);
  return Number.isNaN(seconds) ? Date.parse(String(time)) : seconds;
}

/** A value as csv has it; an apostrophe stands before text that a spreadsheet would take for a formula and run. */
function cell(value: string | number | null): string {
  const risky = typeof value === "string" && /^[=+\-@\t\r\n]/.test(value) && !/^[+-]?\d+(\.\d+)?$/.test(value);
  const text = `${risky ? "'" : ""}${value ?? ""}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
