/** The drawing of a recording: channels on recorder paper, then labels, predictions, time and the whole at a glance. */

import { hue } from "../colour";
import type { Range } from "../strips";
import { clock, day, seconds, values } from "./axis";
import type { Along, RecordingAbout, Run, Span } from "./source";
import { type Part, after } from "./tiles";

export const GUTTER = 150; // left of the drawing, for names and axes
const RIGHT = 14;
const AIR = 0.08; // of a channel's height above and below its line
const LINE = 22; // pixels that a mark of an axis needs
const FONT = '10px ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace';
const WORDS = '11.5px "Avenir Next", Avenir, "Segoe UI Variable Text", "Segoe UI", "Noto Sans", system-ui, sans-serif';
const GAP = 2.5; // steps: a line is not drawn across longer ones

/** Everything that a drawing shows. */
export interface Scene extends Span {
  about: RecordingAbout;
  parts: Part[];
  shown: number[];
  scale: Range[];
  along: Along;
  /** The window that was pinned on the map. */
  window: Span | null;
  /** What keys act on. */
  chosen: Span | null;
  /** The number of a name's colour. */
  code(name: string): number;
  dark: boolean;
}

/** From top to bottom, in pixels. */
export interface Layout {
  width: number;
  height: number;
  left: number;
  right: number;
  channels: number;
  labels: [number, number];
  windows: [number, number];
  predictions: [number, number];
  axis: [number, number];
  whole: [number, number];
}

export function layout(width: number, height: number, dated: boolean, predicted: boolean): Layout {
  const whole: [number, number] = [height - 18, height - 6];
  const axis: [number, number] = [whole[0] - (dated ? 42 : 28), whole[0] - 8];
  const predictions: [number, number] = predicted ? [axis[0] - 24, axis[0] - 6] : [axis[0] - 4, axis[0] - 4];
  const windows: [number, number] = [predictions[0] - 9, predictions[0] - 4];
  const labels: [number, number] = [windows[0] - 25, windows[0] - 2];
  return { width, height, left: GUTTER, right: width - RIGHT, channels: labels[0] - 8, labels, windows, predictions, axis, whole };
}

/** The colours of app.css, which a canvas must be told. */
function colours(dark: boolean): (name: string) => string {
  const style = getComputedStyle(document.documentElement);
  return (name) => {
    const pair = /light-dark\(\s*([^,]+?)\s*,\s*([^)]+?)\s*\)/.exec(style.getPropertyValue(name));
    return pair?.[dark ? 2 : 1] ?? "gray";
  };
}

function tint(code: number, dark: boolean, alpha: number): string {
  return `rgb(${hue(code, dark).join(" ")} / ${alpha})`;
}

export function paint(context: CanvasRenderingContext2D, scene: Scene, at: Layout): void {
  const colour = colours(scene.dark);
  const { start, end, about, dark } = scene;
  const across = (time: number): number => at.left + ((time - start) / (end - start)) * (at.right - at.left);
  const ticks = seconds(start, end, (at.right - at.left) / 90);
  context.clearRect(0, 0, at.width, at.height);
  context.lineWidth = 1;

  // Paper
  context.fillStyle = colour("--raised");
  context.fillRect(at.left, 0, at.right - at.left, at.channels);
  strokes(context, colour("--grid"), ticks.map(({ at: time }) => [across(time), 0, across(time), at.channels]));
  const clipped = (top: number, bottom: number, draw: () => void): void => {
    context.save();
    context.beginPath();
    context.rect(at.left, top, at.right - at.left, bottom - top);
    context.clip();
    draw();
    context.restore();
  };
  const visible = (runs: Run[]): Run[] => runs.filter(([from, to]) => to > start && from < end);
  clipped(0, at.channels, () => {
    for (const [from, to, name] of visible(scene.along.ranges)) {
      context.fillStyle = tint(scene.code(name), dark, dark ? 0.17 : 0.12);
      context.fillRect(across(from), 0, across(to) - across(from), at.channels);
    }
    if (scene.window !== null) {
      context.fillStyle = colour("--leaf");
      context.fillRect(across(scene.window.start), 0, Math.max(1.5, across(scene.window.end) - across(scene.window.start)), 3);
    }
  });

  // Channels
  const each = at.channels / Math.max(1, scene.shown.length);
  scene.shown.forEach((channel, place) => {
    const { low, high } = scene.scale[channel];
    const [top, tall] = [(place + AIR) * each, (1 - 2 * AIR) * each];
    const up = (value: number): number => top + tall - ((value - low) / (high - low)) * tall;
    const lines = values(low, high, Math.floor(tall / LINE));
    context.font = FONT;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillStyle = colour("--soft");
    if (tall >= LINE) for (const { at: value, text } of lines) context.fillText(text, at.left - 8, up(value));
    strokes(context, colour("--grid"), tall < LINE ? [] : lines.map(({ at: value }) => [at.left, up(value), at.right, up(value)]));
    if (place > 0) strokes(context, colour("--line"), [[0, place * each, at.right, place * each]]);
    clipped(place * each, (place + 1) * each, () => {
      context.strokeStyle = colour("--ink");
      context.fillStyle = colour("--ink");
      trace(context, scene, channel, across, (value) => up(value + about.offset[channel]));
    });
  });
  context.strokeStyle = colour("--line");
  context.lineWidth = 1;
  context.strokeRect(at.left - 0.5, 0.5, at.right - at.left + 1, at.channels);

  // Lanes
  const lane = ([top, bottom]: [number, number], title: string): void => {
    context.fillStyle = colour("--sheet");
    context.fillRect(at.left, top, at.right - at.left, bottom - top);
    context.font = WORDS;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillStyle = colour("--soft");
    context.fillText(title, 14, (top + bottom) / 2 + 0.5);
  };
  const blocks = (runs: Run[], [top, bottom]: [number, number], alpha: number, text: string): void => {
    clipped(top, bottom, () => {
      for (const [from, to, name] of visible(runs)) {
        const [left, right] = [across(from), across(to)];
        const wide = Math.max(1, right - left - 1);
        context.clearRect(left, top, wide, bottom - top); // a later range hides an earlier one
        context.fillStyle = tint(scene.code(name), dark, alpha);
        context.fillRect(left, top, wide, bottom - top);
        context.fillStyle = tint(scene.code(name), dark, 1);
        context.fillRect(left, top, Math.min(3, wide), bottom - top);
        const room = Math.min(right, at.right) - Math.max(left, at.left) - 14;
        if (text === "" || room < 14) continue;
        context.font = WORDS;
        context.textAlign = "left";
        context.textBaseline = "middle";
        context.fillStyle = text;
        context.fillText(fitting(context, name, room), Math.max(left, at.left) + 8, (top + bottom) / 2 + 0.5);
      }
    });
  };
  lane(at.labels, "Labels");
  blocks(scene.along.ranges, at.labels, dark ? 0.4 : 0.32, colour("--ink"));
  blocks(scene.along.windows, at.windows, 1, "");
  if (at.predictions[1] > at.predictions[0]) {
    lane(at.predictions, scene.along.segmented ? "Segments" : "Predictions");
    blocks(scene.along.predictions, at.predictions, dark ? 0.2 : 0.16, colour("--soft"));
  }

  // What keys act on
  if (scene.chosen !== null) {
    const [left, right] = [across(scene.chosen.start), across(scene.chosen.end)];
    clipped(0, at.axis[0], () => {
      context.fillStyle = colour("--leaf");
      context.globalAlpha = 0.12;
      context.fillRect(left, 0, right - left, at.channels);
      context.globalAlpha = 1;
      for (const edge of [left, right]) {
        context.fillRect(edge - 0.75, 0, 1.5, at.labels[1]);
        context.beginPath();
        context.roundRect(edge - 3, at.channels / 2 - 12, 6, 24, 3);
        context.fill();
      }
      context.strokeStyle = colour("--leaf");
      context.lineWidth = 1.5;
      context.strokeRect(left, at.labels[0] + 0.75, right - left, at.labels[1] - at.labels[0] - 1.5);
    });
  }

  // Time
  context.font = FONT;
  context.textBaseline = "top";
  const top = at.axis[0];
  strokes(context, colour("--line"), ticks.map(({ at: time }) => [across(time), top, across(time), top + 4]));
  const step = ticks.length > 1 ? ticks[1].at - ticks[0].at : end - start;
  context.textAlign = "center";
  for (const { at: time, text } of ticks) {
    const x = across(time);
    context.fillStyle = colour("--ink");
    context.fillText(text, x, top + 6);
    context.fillStyle = colour("--soft");
    if (about.origin !== null) context.fillText(clock(about.origin + time, step), x, top + 19);
  }
  context.textAlign = "left";
  context.font = WORDS;
  context.fillText("Seconds", 14, top + 4);
  if (about.origin !== null) context.fillText(`${day(about.origin + start)} UTC`, 14, top + 18);

  // The whole recording
  const share = (time: number): number => at.left + ((time - about.start) / (about.end - about.start)) * (at.right - at.left);
  const [first, last] = at.whole;
  context.fillStyle = colour("--line");
  context.beginPath();
  context.roundRect(at.left, first, at.right - at.left, last - first, 3);
  context.fill();
  clipped(first, last, () => {
    for (const [from, to, name] of scene.along.ranges) {
      context.fillStyle = tint(scene.code(name), dark, 0.9);
      context.fillRect(share(from), first, Math.max(1, share(to) - share(from)), last - first);
    }
  });
  const [left, wide] = [share(start), Math.max(6, share(end) - share(start))];
  context.fillStyle = colour("--leaf");
  context.globalAlpha = 0.1;
  context.fillRect(left, first - 2, wide, last - first + 4);
  context.globalAlpha = 1;
  context.strokeStyle = colour("--leaf");
  context.lineWidth = 1.5;
  context.beginPath();
  context.roundRect(left, first - 2, wide, last - first + 4, 3);
  context.stroke();
  context.fillStyle = colour("--soft");
  context.textBaseline = "middle";
  context.fillText("Whole", 14, (first + last) / 2);
}

function strokes(context: CanvasRenderingContext2D, colour: string, lines: number[][]): void {
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  for (const [x, y, toX, toY] of lines) {
    context.moveTo(Math.round(x) + 0.5, Math.round(y) + 0.5);
    context.lineTo(Math.round(toX) + 0.5, Math.round(toY) + 0.5);
  }
  context.stroke();
}

function fitting(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  let short = text;
  while (short.length > 1 && context.measureText(`${short}…`).width > room) short = short.slice(0, -1);
  return `${short}…`;
}

/** One channel: a line from value to value, or where pixels have several, a bar from the least to the greatest of each.

 Bars are drawn thirty times faster than lines that go up and down, and look the same. */
function trace(
  context: CanvasRenderingContext2D,
  { parts, start, end, about }: Scene,
  channel: number,
  across: (time: number) => number,
  up: (value: number) => number,
): void {
  const step = 1 / (about.rate ?? 1);
  const wide = across(start + step) - across(start);
  const pixel = 1 / devicePixelRatio;
  const dense = wide < pixel;
  let [column, top, bottom] = [Number.NaN, 0, 0];
  let [above, below] = [Number.NaN, Number.NaN]; // of the column before, where the line goes on from it
  let before = -Infinity;
  const flush = (): void => {
    if (Number.isNaN(column)) return;
    const [high, low] = Number.isNaN(above) ? [top, bottom] : [Math.min(top, below), Math.max(bottom, above)];
    context.fillRect(column, high - 0.5, pixel, low - high + 1);
    [above, below, column] = [top, bottom, Number.NaN];
  };
  const lift = (): void => {
    if (dense) flush();
    [above, below] = [Number.NaN, Number.NaN];
  };
  context.beginPath();
  for (const { tile, start: first, end: last } of parts) {
    const [low, high] = [tile.low[channel], tile.high[channel]];
    const from = Math.max(first, after(tile.last, start) - 1);
    const to = Math.min(last, after(tile.first, end) + 1);
    for (let i = from; i < to; i++) {
      if (Number.isNaN(low[i]) || tile.first[i] - before > GAP * step) lift();
      before = tile.last[i];
      if (Number.isNaN(low[i])) continue;
      const [x, greatest, least] = [across(tile.first[i]), up(high[i]), up(low[i])];
      if (!dense) {
        if (Number.isNaN(above)) context.moveTo(x - 0.5, greatest); // a single value is a point
        context.lineTo(x, greatest);
        above = greatest;
        if (wide > 9) context.fillRect(x - 1.5, greatest - 1.5, 3, 3);
        continue;
      }
      const place = Math.floor(x / pixel) * pixel;
      if (place === column) {
        top = Math.min(top, greatest);
        bottom = Math.max(bottom, least);
      } else {
        flush();
        [column, top, bottom] = [place, greatest, least];
      }
    }
  }
  lift();
  context.lineWidth = 1.1;
  context.lineJoin = "bevel";
  context.stroke();
}
