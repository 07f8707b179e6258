/** What the pointer does in a recording: draw a range, move an edge, choose, move along, and turn the wheel. */

import { exact } from "./axis";
import type { Layout } from "./painter";
import type { Along, Run, Span } from "./source";
import type { View } from "./view";

const NEAR = 5; // pixels from an edge that still hit it
const STILL = 4; // pixels that a click may move
const MAGNET = 6; // pixels at which an edge jumps to another

/** What keys act on: a stretch without a label yet, a range with one, or a run of equal predictions. */
export interface Chosen extends Span {
  kind: "draft" | "range" | "run";
  label: string | null;
}

/** What the hand sees and may do. */
export interface Desk {
  view: View;
  at: Layout;
  along: Along;
  chosen: Chosen | null;
  whole: Span;
  /** After the stretch on screen or what is chosen has changed. */
  draw(): void;
  choose(chosen: Chosen | null): void;
  /** A range has got new edges. */
  move(before: Chosen, after: Span): void;
  hover(time: number | null): void;
  /** The wheel over the axis of a channel. */
  scale(y: number, factor: number): void;
}

interface Edge {
  of: Chosen;
  side: "start" | "end";
}

type Drag =
  | { kind: "range"; from: number; x: number }
  | { kind: "edge"; edge: Edge; x: number }
  | { kind: "pan"; x: number; start: number }
  | { kind: "whole" };

export function startHand(canvas: HTMLCanvasElement, desk: () => Desk | null): void {
  let drag: Drag | null = null;
  let moved = false;
  const place = (event: MouseEvent): { x: number; y: number } => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.x, y: event.clientY - box.y };
  };
  const within = (y: number, [top, bottom]: [number, number]): boolean => y >= top && y <= bottom;

  canvas.addEventListener("pointerdown", (event) => {
    const d = desk();
    if (d === null || event.button > 1) return;
    canvas.focus({ preventScroll: true });
    const { x, y } = place(event);
    if (x < d.at.left - NEAR) return;
    canvas.setPointerCapture(event.pointerId);
    moved = false;
    const edge = edgeAt(d, x, y);
    if (y >= d.at.whole[0] - 4) drag = { kind: "whole" };
    else if (event.shiftKey || event.button === 1 || y >= d.at.axis[0]) drag = { kind: "pan", x, start: d.view.start };
    else if (edge !== null) {
      drag = { kind: "edge", edge, x };
      d.choose(edge.of);
    } else drag = { kind: "range", from: d.view.time(x, d.at), x };
    if (drag.kind === "whole") glance(d, x);
  });
  canvas.addEventListener("pointermove", (event) => {
    const d = desk();
    if (d === null) return;
    const { x, y } = place(event);
    d.hover(x >= d.at.left && x <= d.at.right ? d.view.time(x, d.at) : null);
    if (drag === null) {
      canvas.style.cursor = cursor(d, x, y);
      return;
    }
    if (drag.kind !== "whole" && Math.abs(x - drag.x) >= STILL) moved = true;
    if (!moved && drag.kind !== "whole") return;
    const pull = !event.altKey;
    if (drag.kind === "pan") {
      d.view.pan(drag.start - ((x - drag.x) / (d.at.right - d.at.left)) * d.view.length - d.view.start);
      d.draw();
    } else if (drag.kind === "whole") glance(d, x);
    else if (drag.kind === "range") {
      const [one, other] = [snapped(d, d.view.pixel(drag.from, d.at), null, pull), snapped(d, x, null, pull)];
      d.choose({ kind: "draft", start: Math.min(one, other), end: Math.max(one, other), label: null });
    } else d.choose(stretched(d, drag.edge, x, pull));
  });
  const drop = (event: PointerEvent): void => {
    const d = desk();
    const done = drag;
    drag = null;
    if (d === null || done === null) return;
    const { x, y } = place(event);
    if (done.kind === "edge" && moved && done.edge.of.kind === "range") d.move(done.edge.of, stretched(d, done.edge, x, !event.altKey));
    else if (done.kind === "range" && !moved) d.choose(under(d, x, y));
    else if (done.kind === "range" && d.chosen !== null && d.chosen.end <= d.chosen.start) d.choose(null);
  };
  canvas.addEventListener("pointerup", drop);
  canvas.addEventListener("pointercancel", () => (drag = null));
  canvas.addEventListener("pointerleave", () => desk()?.hover(null));
  canvas.parentElement?.addEventListener(
    "wheel", // also over the names of the channels

    (event) => {
      const d = desk();
      if (d === null || event.ctrlKey) return; // with Ctrl the browser zooms the page
      event.preventDefault();
      const { x, y } = place(event);
      const unit = event.deltaMode === 1 ? 16 : 1;
      const [dx, dy] = event.shiftKey ? [event.deltaX + event.deltaY, 0] : [event.deltaX, event.deltaY];
      if (x < d.at.left && y < d.at.channels) d.scale(y, Math.exp(0.002 * unit * dy));
      else if (Math.abs(dx) > Math.abs(dy)) d.view.pan(((unit * dx) / (d.at.right - d.at.left)) * d.view.length);
      else d.view.zoom(Math.exp(0.002 * unit * dy), d.view.time(Math.min(d.at.right, Math.max(d.at.left, x)), d.at));
      d.draw();
    },
    { passive: false },
  );

  function cursor(d: Desk, x: number, y: number): string {
    if (x < d.at.left - NEAR) return "default";
    if (edgeAt(d, x, y) !== null) return "ew-resize";
    if (y >= d.at.axis[0]) return "grab";
    return within(y, d.at.labels) || within(y, d.at.predictions) ? "pointer" : "crosshair";
  }

  /** The edge under the pointer: of what is chosen anywhere, of other ranges in their lane. */
  function edgeAt(d: Desk, x: number, y: number): Edge | null {
    if (y > d.at.labels[1]) return null;
    const ranges: Chosen[] = d.along.ranges.map((run) => chosen(run, "range"));
    const there = y >= d.at.labels[0] ? ranges.reverse() : [];
    const first = d.chosen !== null && d.chosen.kind !== "run" ? [d.chosen] : [];
    for (const of of [...first, ...there]) {
      for (const side of ["start", "end"] as const) {
        if (Math.abs(x - d.view.pixel(of[side], d.at)) <= NEAR) return { of, side };
      }
    }
    return null;
  }

  function under(d: Desk, x: number, y: number): Chosen | null {
    const time = d.view.time(x, d.at);
    const lane = within(y, d.at.predictions) ? d.along.predictions : d.along.ranges;
    const found = lane.findLast(([start, end]) => start <= time && time < end);
    return found === undefined ? null : chosen(found, lane === d.along.ranges ? "range" : "run");
  }

  function stretched(d: Desk, { of, side }: Edge, x: number, pull: boolean): Chosen {
    const time = snapped(d, x, of, pull);
    const least = d.view.length / (d.at.right - d.at.left);
    return side === "start"
      ? { ...of, start: Math.min(time, of.end - least) }
      : { ...of, end: Math.max(time, of.start + least) };
  }

  /** The time at a pixel, or the edge of another stretch that is near. */
  function snapped(d: Desk, x: number, own: Chosen | null, pull: boolean): number {
    const each = d.view.length / (d.at.right - d.at.left);
    const time = Math.min(d.whole.end, Math.max(d.whole.start, exact(d.view.time(x, d.at), each)));
    if (!pull) return time;
    let best = time;
    let away = MAGNET * each;
    for (const [start, end] of [...d.along.ranges, ...d.along.predictions]) {
      if (own !== null && start === own.start && end === own.end) continue;
      for (const edge of [start, end]) {
        if (Math.abs(edge - d.view.time(x, d.at)) < away) {
          away = Math.abs(edge - d.view.time(x, d.at));
          best = edge;
        }
      }
    }
    return best;
  }

  function glance(d: Desk, x: number): void {
    const middle = d.whole.start + ((x - d.at.left) / (d.at.right - d.at.left)) * (d.whole.end - d.whole.start);
    d.view.show(middle - d.view.length / 2, middle + d.view.length / 2);
    d.draw();
  }
}

export function chosen([start, end, label]: Run, kind: Chosen["kind"]): Chosen {
  return { kind, start, end, label };
}
