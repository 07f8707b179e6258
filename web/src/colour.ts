/** Colours that people with any colour vision can tell apart, on light and on dark ground. */

import { NONE } from "./map/renderer";
import type { Codes, Column } from "./source";

type Triple = [number, number, number];

function parse(hex: string): Triple {
  return [1, 3, 5].map((i) => Number.parseInt(hex.slice(i, i + 2), 16)) as Triple;
}

// Okabe and Ito's seven hues, then Paul Tol's muted ones; yellow and the darkest are shifted where the ground would hide them.
const LIGHT = [
  "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#b5a100",
  "#332288", "#882255", "#44aa99", "#999933", "#aa4499", "#6699cc", "#8c564b",
].map(parse);
const DARK = [
  "#4a9fd8", "#e69f00", "#12b886", "#ee7733", "#d88ab8", "#8fd0f5", "#f0e442",
  "#8f86dd", "#c4558a", "#66ccbb", "#bdbd4e", "#c977c0", "#a9c4e4", "#c09a8f",
].map(parse);

export const HUES = LIGHT.length;

// Viridis at nine places.
const VIRIDIS = [
  "#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725",
].map(parse);

/** A colour of the scale for a part between 0 and 1; its far end is cut where the ground has nearly the same colour. */
export function ramp(part: number, dark: boolean): Triple {
  const place = (dark ? 0.2 + 0.8 * part : 0.94 * part) * (VIRIDIS.length - 1);
  const left = Math.min(VIRIDIS.length - 2, Math.floor(place));
  return VIRIDIS[left].map((from, i) => Math.round(from + (VIRIDIS[left + 1][i] - from) * (place - left))) as Triple;
}

/** The colour of a category; they repeat after HUES of them. */
export function hue(code: number, dark: boolean): Triple {
  if (code < 0) return dark ? [112, 128, 120] : [150, 162, 155];
  return (dark ? DARK : LIGHT)[code % HUES];
}

export function css([r, g, b]: Triple): string {
  return `rgb(${r} ${g} ${b})`;
}

/** A column as colours: an index into the palette for every window. */
export interface Colouring {
  column: Column;
  codes: Codes;
  indices: Uint8Array;
  /** The ends of the scale of a number; beyond them the colour stays the same. */
  range: { low: number; high: number; cut: boolean } | null;
}

export function colouring(column: Column, codes: Codes): Colouring {
  const indices = new Uint8Array(codes.length);
  if (column.kind === "category") {
    for (let row = 0; row < codes.length; row++) indices[row] = codes[row] < 0 ? NONE : codes[row] % HUES;
    return { column, codes, indices, range: null };
  }
  const range = robustRange(codes);
  const width = range.high - range.low || 1;
  for (let row = 0; row < codes.length; row++) {
    const part = Math.min(1, Math.max(0, (codes[row] - range.low) / width));
    indices[row] = Number.isNaN(codes[row]) ? NONE : Math.round(part * (NONE - 1));
  }
  return { column, codes, indices, range };
}

/** The colours that the indices of a colouring point to. */
export function palette(kind: Column["kind"], dark: boolean): Uint8Array {
  const out = new Uint8Array(4 * 256);
  const alpha = dark ? 215 : 205;
  for (let i = 0; i < NONE; i++) {
    out.set([...(kind === "category" ? hue(i, dark) : ramp(i / (NONE - 1), dark)), alpha], 4 * i);
  }
  out.set([...hue(-1, dark), dark ? 120 : 135], 4 * NONE);
  return out;
}

/** From the 1st to the 99th percentile where outliers would take most of the scale, else from least to most. */
function robustRange(values: Codes): { low: number; high: number; cut: boolean } {
  const finite = new Float64Array(values.length);
  let count = 0;
  for (let row = 0; row < values.length; row++) if (Number.isFinite(values[row])) finite[count++] = values[row];
  const known = finite.subarray(0, count);
  if (count === 0) return { low: 0, high: 1, cut: false };
  const at = (part: number): number => ranked(known, Math.round(part * (count - 1)));
  const whole = { low: at(0), high: at(1), cut: false };
  const inner = { low: at(0.01), high: at(0.99), cut: true };
  return whole.high - whole.low > 2 * (inner.high - inner.low) && inner.high > inner.low ? inner : whole;
}

/** The value that would stand at `place` if all were sorted, which takes ten times as long; puts them in another order. */
function ranked(values: Float64Array, place: number): number {
  let [low, high] = [0, values.length - 1];
  while (low < high) {
    const pivot = values[(low + high) >> 1];
    let [left, right] = [low, high];
    while (left <= right) {
      while (values[left] < pivot) left++;
      while (values[right] > pivot) right--;
      if (left > right) break;
      const value = values[left];
      values[left++] = values[right];
      values[right--] = value;
    }
    if (place <= right) high = right;
    else if (place >= left) low = left;
    else break;
  }
  return values[place];
}
