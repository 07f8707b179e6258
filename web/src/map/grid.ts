/** The nearest point to a place, found through a grid of cells instead of a look at every point. */
export class Grid {
  private readonly side: number;
  private readonly first: Uint32Array;
  private readonly rows: Uint32Array;

  constructor(private readonly points: Float32Array) {
    const n = points.length / 2;
    this.side = Math.max(1, Math.floor(Math.sqrt(n / 2)));
    this.first = new Uint32Array(this.side * this.side + 1);
    this.rows = new Uint32Array(n);
    const cells = new Uint32Array(n);
    for (let row = 0; row < n; row++) {
      cells[row] = this.cell(points[2 * row]) + this.side * this.cell(points[2 * row + 1]);
      this.first[cells[row] + 1]++;
    }
    for (let cell = 0; cell < this.side * this.side; cell++) this.first[cell + 1] += this.first[cell];
    const next = this.first.slice();
    for (let row = 0; row < n; row++) this.rows[next[cells[row]]++] = row;
  }

  /** The row of the nearest point within `radius`, without those that `skip` marks; null where there is none. */
  nearest(x: number, y: number, radius: number, skip: Uint8Array): number | null {
    let best: number | null = null;
    let least = radius * radius;
    const [left, right] = [this.cell(x - radius), this.cell(x + radius)];
    for (let line = this.cell(y - radius); line <= this.cell(y + radius); line++) {
      const end = this.first[line * this.side + right + 1];
      for (let i = this.first[line * this.side + left]; i < end; i++) {
        const row = this.rows[i];
        const distance = (this.points[2 * row] - x) ** 2 + (this.points[2 * row + 1] - y) ** 2;
        if (distance <= least && skip[row] === 0) [best, least] = [row, distance];
      }
    }
    return best;
  }

  private cell(value: number): number {
    return Math.min(this.side - 1, Math.max(0, Math.floor(((value + 1) / 2) * this.side)));
  }
}
