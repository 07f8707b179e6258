/** Where the page's data come from: a server (http.ts) or the page itself (inline.ts). */

import type { Labels } from "./labels";
import type { RecordingSource } from "./recording/source";

export type Time = number | string;

export interface Column {
  name: string;
  title: string;
  /** A time is a number: seconds since 1970, in UTC. */
  kind: "category" | "number" | "time";
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
  /** Labels of other people, beside those that are written to. */
  stores: Store[];
  limits: { series_rows: number; label_rows: number };
  version: string;
}

/** How far the labels of somebody else agree with those that are written to. */
export interface Store {
  /** The column "by NAME" holds them, and "with NAME" says where they agree. */
  name: string;
  /** Windows that both have labelled; what follows is there if there are any. */
  both: number;
  same?: number;
  /** Cohen's; null where it is not defined. */
  kappa?: number | null;
  sentence?: string;
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

export interface Suggestions {
  rows: number[];
  reason: "coverage" | "uncertainty";
}

/** A label that is probably wrong, and what a classifier of the others says instead. */
export interface Doubt {
  row: number;
  label: string;
  /** How probable the label is, by a classifier of the others, and how probable the suggestion. */
  given: number;
  suggestion: string;
  confidence: number;
}

export interface Doubts {
  doubts: Doubt[];
  sentence: string;
}

/** What made the difference to a window: `effect` by channel and piece, from -1 (against) to 1 (for). */
export interface Why {
  row: number;
  effect: number[][];
  /** Where pieces begin and end, as parts of the window: one more than pieces. */
  edges: number[];
  sentence: string;
  nearest: { row: number; distance: number; label: string }[];
}

export interface Verdict {
  sentence: string;
  warnings: string[];
  /** How each class fares among labels that were hidden; shares are null where nothing can be said. */
  classes: { label: string; cases: number; recall: number | null; precision: number | null }[];
  /** Hidden labels (rows) by what was answered (columns). */
  confusion: number[][];
}

/** Codes of categories, -1 for none, or numbers, NaN for unknown; one per window. */
export type Codes = Int32Array | Float64Array;

/** Methods with a question mark are absent where the source cannot do it; the page then hides what needs them. */
export interface Source {
  about(): Promise<About>;
  points(): Promise<Float32Array>;
  column(column: Column): Promise<Codes>;
  series(rows: number[]): Promise<Series[]>;
  neighbours(row: number, k: number): Promise<Neighbours>;
  find(recording: string, time: string): Promise<number>;
  labels(): Promise<Labels>;
  /** With `confirm` the label was looked at again: it is not doubted any more. */
  label(rows: number[], name: string | null, confirm?: boolean): Promise<Labels>;
  /** `any` tells whether anything was taken back; a range may lie on no window. */
  undo(): Promise<Labels & { undone: number[]; any?: boolean }>;
  export(rows: number[]): Promise<Blob>;
  context?(row: number): Promise<Context>;
  /** Windows that `hidden` marks are not suggested. */
  suggest?(k: number, hidden: Uint8Array | null): Promise<Suggestions>;
  classify?(): Promise<Verdict>;
  recordings?: RecordingSource;
  doubts?(): Promise<Doubts>;
  why?(row: number): Promise<Why>;
}
