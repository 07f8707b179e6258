/** The values of a recording at the level of detail that the screen can show, asked for tile by tile. */

import type { RecordingAbout, RecordingSource } from "./source";

const AT_ONCE = 4; // requests under way
const KEPT = 64_000_000; // bytes

/** Some bins of a recording: of single time steps first and last are the same array, and so are low and high. */
export interface Tile {
  first: Float64Array;
  last: Float64Array;
  low: Float32Array[];
  high: Float32Array[];
}

/** The part of a tile from bin `start` to before `end`. */
export interface Part {
  tile: Tile;
  start: number;
  end: number;
}

export class Tiles {
  private readonly kept = new Map<string, { tile: Tile; bytes: number }>();
  private readonly pending = new Set<string>();
  private wanted: [number, number][] = [];
  private bytes = 0;

  /** `came` is told when a tile is there, `failed` when one is not to be had. */
  constructor(
    private readonly source: RecordingSource,
    private readonly number: number,
    readonly about: RecordingAbout,
    private readonly came: () => void,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** Brings the coarsest level, which stands in for all others until they are there. */
  async begin(): Promise<void> {
    await this.bring(this.top, 0);
  }

  /** The time step at a time, with a fraction; gaps have few. */
  index(time: number): number {
    const { edges, tile, counts, end } = this.about;
    const at = Math.max(0, after(edges, time) - 1);
    const next = at + 1 < edges.length ? edges[at + 1] : end;
    const steps = Math.min(tile, counts[0] - at * tile);
    const part = (time - edges[at]) / (next - edges[at] || 1);
    return at * tile + Math.min(1, Math.max(0, part)) * steps;
  }

  /** What to draw between two times on so many pixels, from left to right; what is missing is asked for. */
  parts(from: number, to: number, pixels: number): Part[] {
    const { sizes, tile } = this.about;
    const [left, right] = [this.index(from), this.index(to)];
    const each = (right - left) / pixels;
    let level = 0;
    while (level + 1 < sizes.length && sizes[level + 1] <= each) level++;
    const span = sizes[level] * tile;
    const parts: Part[] = [];
    this.wanted = [];
    for (let number = Math.floor(left / span); number * span < Math.max(right, left + 1); number++) {
      if (number * span >= this.about.counts[0]) break;
      if (!this.kept.has(`${level}/${number}`)) this.wanted.push([level, number]);
      const part = this.nearest(level, number);
      const before = parts.at(-1);
      if (before?.tile === part.tile) before.end = part.end; // both stand in for finer ones
      else parts.push(part);
    }
    this.pump();
    return parts;
  }

  /** A tile, or the same stretch of the finest coarser one that is there. */
  private nearest(level: number, number: number): Part {
    const { sizes, tile, counts } = this.about;
    const begin = number * sizes[level] * tile;
    const end = Math.min(begin + sizes[level] * tile, counts[0]);
    for (let at = level; ; at++) {
      const place = Math.floor(begin / (sizes[at] * tile));
      const key = `${at}/${place}`;
      const found = this.kept.get(key);
      if (found === undefined) continue; // the coarsest is always there
      this.kept.delete(key);
      this.kept.set(key, found); // the one that was used last comes last
      const first = Math.floor(begin / sizes[at]) - place * tile;
      return { tile: found.tile, start: first, end: Math.ceil(end / sizes[at]) - place * tile };
    }
  }

  private get top(): number {
    return this.about.sizes.length - 1;
  }

  private pump(): void {
    for (const [level, number] of this.wanted) {
      if (this.pending.size >= AT_ONCE) return;
      const key = `${level}/${number}`;
      if (this.pending.has(key) || this.kept.has(key)) continue;
      this.bring(level, number).then(this.came, this.failed);
    }
  }

  private async bring(level: number, number: number): Promise<void> {
    const key = `${level}/${number}`;
    this.pending.add(key);
    try {
      const buffer = await this.source.tile(this.number, level, number);
      this.keep(key, { tile: unpack(buffer, this.about, level, number), bytes: buffer.byteLength });
    } finally {
      this.pending.delete(key);
    }
  }

  private keep(key: string, one: { tile: Tile; bytes: number }): void {
    this.kept.set(key, one);
    this.bytes += one.bytes;
    for (const [old, { bytes }] of this.kept) {
      if (this.bytes <= KEPT) break;
      if (old === `${this.top}/0`) continue;
      this.kept.delete(old);
      this.bytes -= bytes;
    }
  }
}

function unpack(buffer: ArrayBuffer, about: RecordingAbout, level: number, number: number): Tile {
  const n = Math.min(about.tile, about.counts[level] - number * about.tile);
  const single = level === 0;
  const first = new Float64Array(buffer, 0, n);
  const last = single ? first : new Float64Array(buffer, 8 * n, n);
  const begin = (single ? 8 : 16) * n;
  const rows = (offset: number): Float32Array[] =>
    about.channels.map((_, channel) => new Float32Array(buffer, begin + 4 * n * (offset + channel), n));
  const low = rows(0);
  return { first, last, low, high: single ? low : rows(about.channels.length) };
}

/** How many of the sorted values are not greater than `value`. */
export function after(values: ArrayLike<number>, value: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
