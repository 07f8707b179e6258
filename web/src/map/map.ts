/** The map: points that can be hovered, clicked, dragged, zoomed and circled. */

import { h } from "../dom";
import { Camera } from "./camera";
import { Grid } from "./grid";
import { inside } from "./lasso";
import { HIDDEN, MARKED, NONE, Renderer, SELECTED } from "./renderer";

export interface MapEvents {
  hover(row: number | null): void;
  click(row: number | null): void;
  lasso(rows: number[]): void;
  /** The lasso was picked up or put down. */
  mode(lasso: boolean): void;
}

export interface Marks {
  hovered: number | null;
  pinned: number | null;
  neighbours: number[];
  /** The neighbour that the arrow keys are at. */
  stepped: number | null;
}

const REACH = 12; // pixels from the pointer to a point that it still means
const LEGEND = 212; // pixels on the left of a wide map that the legend covers
const STILL = 4; // pixels that a click may move
const SETTLED = 150; // milliseconds after which a movement is over
const FLUID = 40; // milliseconds that a frame may take
const LATER = 120; // milliseconds after an act that all points are drawn, when the rest of the page has changed
const FIRST = 40_000; // points that a frame draws before it is known how long they take
const LEAST = 5_000; // points that it always draws

const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class PointMap {
  private readonly discs: HTMLCanvasElement;
  private readonly overlay: HTMLCanvasElement;
  /** Pixels at the bottom that something else covers. */
  covered = 0;
  private readonly camera = new Camera();
  private renderer: Renderer;
  private points: Float32Array = new Float32Array();
  private grid = new Grid(this.points);
  private colours: Uint8Array = new Uint8Array();
  private palette: Uint8Array = new Uint8Array(4 * 256);
  private hidden: Uint8Array = new Uint8Array();
  private states: Uint8Array = new Uint8Array();
  private someSelected = false;
  private changed = true; // whether colours or states are other than those that were drawn
  private marks: Marks = { hovered: null, pinned: null, neighbours: [], stepped: null };
  private lassoing = false;
  private line: [number, number][] = [];
  private readonly held = new Map<number, [number, number]>();
  private scheduled = false;
  private stale = false; // whether the points must be drawn anew
  private moved = false; // whether the marks must be drawn anew
  private quiet = false; // whether what is seen of them may stay until all are drawn
  private rest = 0; // the timer that ends a movement; 0 while nothing moves
  private budget = FIRST; // points that a frame has time for
  private pieces = 0; // the frame that will draw the next piece of the whole picture; 0 where it is whole
  private drawnAt = 0;
  private flight = 0;

  constructor(
    private readonly place: HTMLElement,
    private readonly events: MapEvents,
  ) {
    this.discs = h("canvas", { class: "map-points", "aria-hidden": "true" });
    this.overlay = h("canvas", { class: "map-marks", "aria-hidden": "true" });
    place.prepend(this.discs, this.overlay);
    this.renderer = new Renderer(this.discs);
    this.discs.addEventListener("webglcontextlost", (event) => event.preventDefault());
    this.discs.addEventListener("webglcontextrestored", () => {
      cancelAnimationFrame(this.pieces);
      this.renderer = new Renderer(this.discs);
      this.upload();
    });
    new ResizeObserver(() => this.resize()).observe(place);
    this.resize();
    this.listen();
  }

  get lasso(): boolean {
    return this.lassoing;
  }

  set lasso(on: boolean) {
    this.lassoing = on;
    if (!on) this.line = [];
    this.place.classList.toggle("lasso", on);
    this.events.mode(on);
    this.redraw(false);
  }

  setPoints(points: Float32Array): void {
    this.points = points;
    this.grid = new Grid(points);
    const n = points.length / 2;
    this.colours = new Uint8Array(n).fill(NONE);
    this.hidden = new Uint8Array(n);
    this.states = new Uint8Array(n);
    this.upload();
  }

  /** `same` where they are of the column that was shown before. */
  setColours(indices: Uint8Array, palette: Uint8Array, same: boolean): void {
    this.colours = indices;
    this.palette = palette;
    this.uploadLooks(same);
  }

  setHidden(hidden: Uint8Array): void {
    this.hidden = hidden;
    for (let row = 0; row < hidden.length; row++) this.states[row] = (this.states[row] & ~HIDDEN) | (hidden[row] ? HIDDEN : 0);
    this.uploadLooks(false, false);
  }

  setSelection(rows: number[]): void {
    const before = this.someSelected;
    this.someSelected = rows.length > 0;
    this.flag(SELECTED, rows, before === this.someSelected);
  }

  /** Points with a ring: those that have a label. */
  setMarked(rows: number[]): void {
    this.flag(MARKED, rows, true);
  }

  private flag(flag: number, rows: number[], quiet: boolean): void {
    for (let row = 0; row < this.states.length; row++) this.states[row] &= ~flag;
    for (const row of rows) this.states[row] |= flag;
    this.uploadLooks(quiet, false);
  }

  setMarks(marks: Partial<Marks>): void {
    this.marks = { ...this.marks, ...marks };
    this.redraw(false);
  }

  /** Where a point is on the page, in pixels of the window. */
  screen(row: number): { x: number; y: number } {
    const [x, y] = this.camera.toScreen(this.points[2 * row], this.points[2 * row + 1]);
    const box = this.place.getBoundingClientRect();
    return { x: box.left + x, y: box.top + y };
  }

  /** Brings a point into view, if it is not well in view already. */
  show(row: number): void {
    const { camera } = this;
    const [x, y] = [this.points[2 * row], this.points[2 * row + 1]];
    const [px, py] = camera.toScreen(x, y);
    const margin = Math.min(camera.width, camera.height) * 0.06;
    const bottom = camera.height - this.covered - margin;
    if (px > margin + camera.lead && px < camera.width - margin && py > margin && py < bottom) return;
    const goal = y - this.covered / 2 / camera.scale; // in the middle of what is left
    const from = [camera.x, camera.y];
    const began = performance.now();
    const flight = ++this.flight;
    const step = (now: number): void => {
      if (flight !== this.flight) return;
      const part = calm.matches ? 1 : Math.min(1, (now - began) / 240);
      const eased = 1 - (1 - part) ** 3;
      camera.x = from[0] + (x - from[0]) * eased;
      camera.y = from[1] + (goal - from[1]) * eased;
      this.move();
      if (part < 1) requestAnimationFrame(step);
    };
    step(began);
  }

  /** Zooms around the middle. */
  zoom(factor: number): void {
    this.camera.zoomAt(...this.camera.toScreen(this.camera.x, this.camera.y), factor);
    this.move();
  }

  pan(dx: number, dy: number): void {
    this.camera.pan(dx, dy);
    this.move();
  }

  reset(): void {
    this.flight++;
    this.camera.reset();
    this.redraw();
  }

  /** The point nearest to the middle of the map, for those who have no pointer. */
  middle(): number | null {
    return this.grid.nearest(this.camera.x, this.camera.y, 4, this.hidden);
  }

  /** Draws at the next frame: points, marks, or both. */
  private redraw(points = true, quiet = false, marks = !quiet): void {
    this.moved ||= marks;
    if (points) {
      this.quiet = quiet && (this.quiet || !this.stale);
      this.stale = true;
      this.place.setAttribute("aria-busy", "true");
    }
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame((now) => {
      this.scheduled = false;
      if (this.stale && !(this.quiet && this.pieces !== 0)) this.drawPoints(now);
      if (this.moved) this.drawMarks();
    });
  }

  /** Redraws while the map moves: where frames are slow, with fewer points until it rests. */
  private move(): void {
    clearTimeout(this.rest);
    this.rest = window.setTimeout(() => {
      this.rest = 0;
      this.redraw(true, true);
    }, SETTLED);
    this.redraw();
  }

  private adapt(took: number, growth = 1.15): void {
    if (took > SETTLED * 4) return; // the pointer rested
    if (took > FLUID) this.budget = Math.max(LEAST, 0.6 * Math.min(this.budget, this.renderer.count));
    else if (this.share < 1) this.budget *= growth; // where all are drawn, nobody knows how many more could be
  }

  /** The part of the points that a frame has time for. */
  private get share(): number {
    return Math.min(1, this.budget / Math.max(1, this.renderer.count));
  }

  private upload(): void {
    this.renderer.setPoints(this.points);
    this.uploadLooks();
  }

  private uploadLooks(quiet = false, marks = !quiet): void {
    this.changed = true;
    this.redraw(true, quiet, marks);
  }

  private resize(): void {
    const { width, height } = this.place.getBoundingClientRect();
    this.camera.width = Math.max(1, width);
    this.camera.height = Math.max(1, height);
    this.camera.lead = width > 640 ? LEGEND : 0;
    for (const canvas of [this.discs, this.overlay]) {
      canvas.width = Math.max(1, Math.round(width * devicePixelRatio));
      canvas.height = Math.max(1, Math.round(height * devicePixelRatio));
    }
    this.redraw();
    this.drawPoints(performance.now()); // at once: a canvas of another size is empty
    this.drawMarks();
  }

  /** The diameter of a disc: smaller the more there are, larger the closer one looks. */
  private size(): number {
    const room = Math.sqrt((this.camera.width * this.camera.height) / Math.max(1, this.points.length / 2));
    return Math.min(13, Math.max(2.2, Math.min(5.5, 0.45 * room)) * this.camera.zoom ** 0.33);
  }

  private drawPoints(now: number): void {
    if (this.rest !== 0) this.adapt(now - this.drawnAt);
    this.drawnAt = now;
    this.stale = false;
    const ink = getComputedStyle(this.overlay).color.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0];
    if (this.changed) {
      this.renderer.setLooks(this.colours, this.states);
      this.renderer.setPalette(this.palette);
      this.changed = false;
    }
    this.renderer.aim(this.camera, devicePixelRatio, this.size(), ink, this.someSelected);
    cancelAnimationFrame(this.pieces);
    this.pieces = 0;
    const slow = this.rest === 0 && this.share < 1;
    if (!slow || !this.quiet) this.renderer.sketch(slow ? this.share / 3 : this.share); // the page changes too
    if (slow) this.complete(now + LATER);
    else if (this.rest === 0) this.place.setAttribute("aria-busy", "false");
  }

  /** Draws all points behind what is seen, a piece in each frame so that none takes long, and shows them when they are whole. */
  private complete(from: number): void {
    let last = from;
    this.renderer.begin();
    const step = (now: number): void => {
      this.pieces = requestAnimationFrame(step);
      if (now < from || this.renderer.busy) return;
      if (last > from) this.adapt(now - last, now - last < FLUID / 2 ? 2 : 1.15);
      last = now;
      if (!this.renderer.more(this.share)) return;
      cancelAnimationFrame(this.pieces);
      this.pieces = 0;
      if (this.stale) this.redraw(true, this.quiet);
      else this.place.setAttribute("aria-busy", "false");
    };
    this.pieces = requestAnimationFrame(step);
  }

  private drawMarks(): void {
    this.moved = false;
    const pen = this.overlay.getContext("2d");
    if (pen === null) return;
    const look = getComputedStyle(this.overlay);
    const [ink, paper] = [look.color, look.caretColor];
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.clearRect(0, 0, this.camera.width, this.camera.height);
    const { hovered, pinned, neighbours, stepped } = this.marks;
    const at = (row: number): [number, number] => this.camera.toScreen(this.points[2 * row], this.points[2 * row + 1]);
    const ring = (row: number, radius: number, width: number): void => {
      for (const [colour, extra] of [[paper, 2.5], [ink, 0]] as const) {
        pen.strokeStyle = colour;
        pen.lineWidth = width + extra;
        pen.beginPath();
        pen.arc(...at(row), radius, 0, 2 * Math.PI);
        pen.stroke();
      }
    };
    const reach = this.size() / 2 + 2.5;
    if (pinned !== null) {
      pen.strokeStyle = ink;
      pen.lineWidth = 1;
      pen.globalAlpha = 0.45;
      pen.beginPath();
      for (const row of neighbours) {
        pen.moveTo(...at(pinned));
        pen.lineTo(...at(row));
      }
      pen.stroke();
      pen.globalAlpha = 1;
      for (const row of neighbours) ring(row, reach, row === stepped ? 2.5 : 1.2);
      ring(pinned, reach + 3, 2.5);
    }
    if (hovered !== null && hovered !== pinned) ring(hovered, reach + 1, 1.8);
    if (this.line.length > 1) {
      pen.beginPath();
      for (const [x, y] of this.line) pen.lineTo(...this.camera.toScreen(x, y));
      pen.closePath();
      pen.strokeStyle = pen.fillStyle = ink;
      pen.globalAlpha = 0.09;
      pen.fill();
      pen.globalAlpha = 1;
      pen.lineWidth = 1.5;
      pen.setLineDash([5, 4]);
      pen.stroke();
      pen.setLineDash([]);
    }
  }

  private pick(px: number, py: number): number | null {
    const [x, y] = this.camera.toPlane(px, py);
    return this.grid.nearest(x, y, REACH / this.camera.scale, this.hidden);
  }

  private listen(): void {
    const canvas = this.overlay;
    const place = (event: MouseEvent): [number, number] => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      this.flight++;
      this.held.set(event.pointerId, place(event));
      moved = this.held.size > 1 ? STILL + 1 : 0; // two fingers never click
      if (event.shiftKey && !this.lassoing) this.lasso = true;
      this.line = this.lassoing && this.held.size === 1 ? [this.camera.toPlane(...place(event))] : [];
    });
    canvas.addEventListener("pointermove", (event) => {
      const now = place(event);
      const before = this.held.get(event.pointerId);
      if (before === undefined) {
        if (event.pointerType !== "touch" && !this.lassoing) this.events.hover(this.pick(...now));
        return;
      }
      const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
      moved += Math.hypot(dx, dy);
      this.held.set(event.pointerId, now);
      if (this.line.length > 0) {
        this.line.push(this.camera.toPlane(...now));
        this.redraw(false);
      } else if (this.held.size === 2) {
        this.pinch(event.pointerId, before, now);
      } else if (moved > STILL) {
        this.pan(dx, dy);
      }
    });
    const release = (event: PointerEvent): void => {
      if (!this.held.delete(event.pointerId)) return;
      const line = this.line;
      this.line = [];
      if (event.type === "pointercancel") {
        this.redraw(false);
      } else if (line.length > 0) {
        this.lasso = false;
        if (line.length > 2) this.events.lasso(inside(this.points, line, this.hidden));
      } else if (moved <= STILL) {
        this.events.click(this.pick(...place(event)));
      }
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => this.events.hover(null));
    canvas.addEventListener("dblclick", (event) => {
      this.camera.zoomAt(...place(event), 2);
      this.move();
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 18 : 1;
        this.camera.zoomAt(...place(event), Math.exp(-event.deltaY * lines * 0.0016));
        this.move();
      },
      { passive: false },
    );
  }

  private pinch(moving: number, before: [number, number], now: [number, number]): void {
    for (const [id, other] of this.held) {
      if (id === moving) continue;
      const apart = (point: [number, number]): number => Math.hypot(point[0] - other[0], point[1] - other[1]);
      this.camera.zoomAt((now[0] + other[0]) / 2, (now[1] + other[1]) / 2, apart(now) / Math.max(1, apart(before)));
    }
    this.move();
  }
}
