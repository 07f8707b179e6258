/** Where the page's data come from: a server (http.ts) or the page itself (inline.ts). */

import type { RecordingSource } from "./recording/source";

export type Time = number | string;

export interface Column {
  name: string;
  title: string;
  kind: "category" | "number";
  categories?: string[];
}

export interface About {
  title: string;
  n: number;
  channels: string[];
  rate: number | null;
  /** Whether the values of the windows are at hand. */
  series: boolean;
  /** Whether whole recordings are. */
  recordings?: boolean;
  columns: Column[];
  labels: string[];
  limits: { series_rows: number; label_rows: number };
  version: string;
}

/** What is known of one window. */
export interface Window {
  recording: string | null;
  group: string | null;
  start: Time | null;
  end: Time | null;
  label: string | null;
}

/** A value is null where the recording has none. */
export type Values = ArrayLike<number | null>;

export interface Series extends Window {
  row: number;
  channels: Values[];
}

export interface Context {
  row: number;
  recording: string | null;
  time: Time[];
  /** First and last index of the window in `time`. */
  window: [number, number];
  channels: Values[];
}

export interface Neighbours {
  rows: number[];
  distances: number[] | null;
}

export interface Labels {
  labels: Record<string, string>;
  names: string[];
  can_undo: boolean;
}

export interface Suggestions {
  rows: number[];
  reason: "coverage" | "uncertainty";
}

export interface Verdict {
  sentence: string;
  warnings: string[];
}

/** Codes of categories, -1 for none, or numbers, NaN for unknown; one per window. */
export type Codes = Int32Array | Float32Array;

/** Methods with a question mark are absent where the source cannot do it; the page then hides what needs them. */
export interface Source {
  about(): Promise<About>;
  points(): Promise<Float32Array>;
  column(column: Column): Promise<Codes>;
  series(rows: number[]): Promise<Series[]>;
  neighbours(row: number, k: number): Promise<Neighbours>;
  find(recording: string, time: string): Promise<number>;
  labels(): Promise<Labels>;
  label(rows: number[], name: string | null): Promise<Labels>;
  /** `any` tells whether anything was taken back; a range may lie on no window. */
  undo(): Promise<Labels & { undone: number[]; any?: boolean }>;
  export(rows: number[]): Promise<Blob>;
  context?(row: number): Promise<Context>;
  suggest?(k: number): Promise<Suggestions>;
  classify?(): Promise<Verdict>;
  recordings?: RecordingSource;
}
