/** Where an axis has its marks, and what stands beside them. */

const CLOCK = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];

/** The least of 1, 2 and 5 times a power of ten that is not below `least`. */
function round(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((factor) => factor * power >= least * 0.999999) ?? 10);
}

export interface Mark {
  at: number;
  text: string;
}

function marks(low: number, high: number, step: number, text: (at: number) => string): Mark[] {
  const out: Mark[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) out.push({ at: i * step, text: text(i * step) });
  return out;
}

function digits(step: number): number {
  return Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
}

/** About so many marks of a channel's axis, and two at least: one alone says nothing of the scale. */
export function values(low: number, high: number, most: number): Mark[] {
  let step = round((high - low) / Math.max(1, most));
  while (Math.floor(high / step) - Math.ceil(low / step) < 1) step = round(step / 2.5);
  const large = Math.max(Math.abs(low), Math.abs(high)) >= 1e5 || step < 1e-4;
  return marks(low, high, step, (at) => (large ? at.toExponential(1) : at.toFixed(digits(step)).replace("-", "−")));
}

/** Marks in seconds, each with room for its text; of long stretches at whole minutes and hours. */
export function seconds(from: number, to: number, most: number): Mark[] {
  const least = (to - from) / Math.max(1, most);
  const step = least < 1 ? round(least) : (CLOCK.find((one) => one >= least) ?? round(least / 86_400) * 86_400);
  return marks(from, to, step, (at) => grouped(at, digits(step)));
}

/** "12,345.6": thin spaces would be finer, but not every font has them. */
function grouped(value: number, places: number): string {
  return (Math.abs(value) < 10 ** -places / 2 ? 0 : value).toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
}

/** A time in seconds with as many digits as tell pixels apart. */
export function exact(time: number, perPixel: number): number {
  return Number(time.toFixed(Math.min(6, Math.max(0, Math.ceil(-Math.log10(perPixel))))));
}

/** The time of day of a date in seconds since 1970: "14:03:05", with fractions where they are told apart. */
export function clock(date: number, step: number): string {
  const places = step >= 1 ? 0 : Math.min(3, digits(step));
  return new Date(1000 * date).toISOString().slice(11, places === 0 ? 19 : 20 + places);
}

export function day(date: number): string {
  return new Date(1000 * date).toISOString().slice(0, 10);
}
