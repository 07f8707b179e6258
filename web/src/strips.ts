/** Series as strips of recorder paper, one per channel. */

import { h, svg } from "./dom";
import { number } from "./format";
import type { Series, Values, Why } from "./source";

export interface Range {
  low: number;
  high: number;
}

/** The least and greatest value of every channel: a scale that all series share; some may have lost their recording. */
export function ranges(series: Pick<Series, "channels">[]): Range[] {
  const there = series.filter(({ channels }) => channels.length > 0);
  return (there[0]?.channels ?? []).map((_, channel) => {
    let [low, high] = [Infinity, -Infinity];
    for (const { channels } of there) {
      const values = channels[channel];
      for (let i = 0; i < values.length; i++) {
        const value = values[i];
        if (value === null) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    if (low > high) return { low: 0, high: 1 };
    return low === high ? { low: low - 1, high: high + 1 } : { low, high };
  });
}

/** A line through the values: x runs from 0 to `width`, the range from `top + height` up to `top`; missing values are gaps. */
export function line(values: Values, { low, high }: Range, width: number, top: number, height: number): string {
  const steps: string[] = [];
  const across = width / Math.max(1, values.length - 1);
  const place = (i: number, value: number): string => {
    const y = top + height - ((value - low) / (high - low)) * height;
    return `${(i * across).toFixed(1)} ${y.toFixed(1)}`;
  };
  let drawing = false;
  const add = (i: number): void => {
    const value = values[i];
    if (value === null) {
      drawing = false;
      return;
    }
    steps.push(`${drawing ? "L" : "M"}${place(i, value)}`);
    drawing = true;
  };
  const bucket = Math.ceil(values.length / (2 * width));
  if (bucket < 2) {
    for (let i = 0; i < values.length; i++) add(i);
    return steps.join("");
  }
  for (let first = 0; first < values.length; first += 2 * bucket) {
    for (const i of extremes(values, first, Math.min(values.length, first + 2 * bucket))) add(i);
  }
  return steps.join("");
}

/** Where the least and the greatest value of a stretch are, in order: more points than pixels would be drawn in vain. */
function extremes(values: Values, first: number, end: number): number[] {
  let [low, high] = [first, first];
  for (let i = first; i < end; i++) {
    const value = values[i];
    if (value === null) return [i];
    if (value < (values[low] as number)) low = i;
    if (value > (values[high] as number)) high = i;
  }
  return low === high ? [low] : [Math.min(low, high), Math.max(low, high)];
}

const WIDTH = 300;
const AIR = 0.1; // of a strip's height above and below its line

/** The paper: ten parts across, one strip per channel. */
export function grid(width: number, height: number, channels: number): SVGElement {
  const across = Array.from({ length: 9 }, (_, i) => `M${((i + 1) * width) / 10} 0V${height}`);
  const along = Array.from({ length: channels - 1 }, (_, i) => `M0 ${((i + 1) * height) / channels}H${width}`);
  return svg("g", {}, svg("path", { class: "grid", d: across.join("") }), svg("path", { class: "rule", d: along.join("") }));
}

/** The drawing of one window: all channels in `height` pixels. */
export function drawing(series: Series, scale: Range[], height: number, names: string[], why: Why | null = null): SVGElement {
  const each = height / series.channels.length;
  const lines = series.channels.map((values, channel) =>
    svg("path", {
      class: "trace",
      d: line(values, scale[channel], WIDTH, (channel + AIR) * each, (1 - 2 * AIR) * each),
    }),
  );
  const title = `Series of window ${series.row}: ${names.slice(0, 12).join(", ")}`;
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", height, role: "img", "aria-label": title, class: "drawing" },
    grid(WIDTH, height, series.channels.length),
    ...(why === null ? [] : bands(why, each)),
    ...lines,
  );
}

/** Soft bands behind the stretches of each channel that made a difference. */
function bands({ effect, edges }: Why, each: number): SVGElement[] {
  return effect.flatMap((pieces, channel) =>
    pieces.flatMap((part, i) => {
      if (Math.abs(part) < 0.05) return []; // it would not be seen
      const [x, width] = [edges[i] * WIDTH, (edges[i + 1] - edges[i]) * WIDTH];
      return [svg("rect", { class: part > 0 ? "why for" : "why against", x, y: channel * each, width, height: each, "fill-opacity": ((part > 0 ? 0.42 : 0.25) * Math.abs(part)).toFixed(2) })];
    }),
  );
}

/** The same with the channels' names and ranges beside it. */
export function strips(series: Series, scale: Range[], height: number, names: string[], why: Why | null = null): HTMLElement {
  const side = (name: string, text: (channel: number) => (string | HTMLElement)[]): HTMLElement => {
    const column = h("div", { class: name });
    series.channels.forEach((_, channel) => column.append(h("div", {}, ...text(channel))));
    column.style.height = `${height}px`;
    return column;
  };
  const ends = scale.map(({ low, high }) => [number(high), number(low)]);
  const room = height / series.channels.length >= 27; // for two numbers
  return h(
    "div",
    { class: room ? "strips" : "strips low" },
    side("strip-names", (channel) => {
      const [high, low] = ends[channel];
      return [h("span", { title: `${names[channel]}, drawn from ${low} to ${high}` }, names[channel])];
    }),
    drawing(series, scale, height, names, why),
    room && side("strip-ranges", (channel) => ends[channel].map((end) => h("span", {}, end))),
  );
}

/** A height at which channels can be told apart and the whole stays in view. */
export function tallness(channels: number, each: number, all: number, least: number): number {
  return Math.round(Math.max(least, Math.min(each, all / Math.max(1, channels))) * Math.max(1, channels));
}
