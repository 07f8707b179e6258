/** What the large view asks of the server; a page that was exported has no recordings. */

import type { Labels } from "../labels";

export interface RecordingName {
  name: string;
  /** Whether its file is missing or has changed. */
  lost: boolean;
}

export interface RecordingAbout {
  channels: string[];
  units: string[];
  /** What the values of each channel are counted from. */
  offset: number[];
  low: number[];
  high: number[];
  rate: number | null;
  start: number;
  end: number;
  /** The date of time 0 in seconds since 1970, where it is known. */
  origin: number | null;
  tile: number;
  /** Of each level, the time steps in a bin, and the number of bins. */
  sizes: number[];
  counts: number[];
  /** The time of every `tile`-th time step. */
  edges: number[];
}

/** Start, end and name of a stretch. */
export type Run = [number, number, string];

export interface Span {
  start: number;
  end: number;
}

/** A range as it is on screen. */
export interface Seen extends Span {
  label: string;
}

export interface Along {
  /** Labels given by hand, the oldest first: a later one lies over an earlier one. */
  ranges: Run[];
  /** What the windows are labelled. */
  windows: Run[];
  predictions: Run[];
  /** In place of predictions there are stretches of one activity that were found without labels. */
  segmented: boolean;
  /** Seconds that a prediction lasts at least; null where there are none. */
  least: number | null;
}

export interface RecordingSource {
  all(): Promise<RecordingName[]>;
  about(number: number): Promise<RecordingAbout>;
  tile(number: number, level: number, tile: number): Promise<ArrayBuffer>;
  /** Of predictions those that last `least` seconds or more; null for the server's choice. */
  along(number: number, least: number | null): Promise<Along>;
  /**
   * Adds a range (no `before`), moves or renames it, or takes it away (no `after`): one action to undo. `over` is the
   * label of a range at the new place, which is replaced. Where a range is not what is said here, somebody else was
   * faster: that is an error, and nothing is changed.
   */
  change(number: number, before: Seen | null, after: Span | null, label: string | null, over: string | null): Promise<Labels & Along>;
  export(form: "csv" | "json"): Promise<Blob>;
}

type Ask = (path: string, body?: unknown) => Promise<Response>;

export class HttpRecordings implements RecordingSource {
  constructor(private readonly ask: Ask) {}

  async all(): Promise<RecordingName[]> {
    return (await this.json<{ recordings: RecordingName[] }>("recordings")).recordings;
  }

  about(number: number): Promise<RecordingAbout> {
    return this.json(`recordings/${number}`);
  }

  async tile(number: number, level: number, tile: number): Promise<ArrayBuffer> {
    return (await this.ask(`recordings/${number}/tile?level=${level}&tile=${tile}`)).arrayBuffer();
  }

  along(number: number, least: number | null): Promise<Along> {
    return this.json(`recordings/${number}/ranges${least === null ? "" : `?least=${least}`}`);
  }

  change(number: number, before: Seen | null, after: Span | null, label: string | null, over: string | null): Promise<Labels & Along> {
    return this.json(`recordings/${number}/ranges`, { before, after, label, over });
  }

  async export(form: "csv" | "json"): Promise<Blob> {
    return (await this.ask(`ranges/${form}`)).blob();
  }

  private async json<T>(path: string, body?: unknown): Promise<T> {
    return (await (await this.ask(path, body)).json()) as T;
  }
}
