/** Series that were asked for once are kept, and a request that is under way is not sent again. */

import type { Series, Source } from "./source";

const KEPT = 3000;

export class SeriesCache {
  private readonly kept = new Map<number, Promise<Series>>();

  constructor(
    private readonly source: Source,
    private readonly most: number,
  ) {}

  has(row: number): boolean {
    return this.kept.has(row);
  }

  /** The series of some windows, in the order asked for. */
  async get(rows: number[]): Promise<Series[]> {
    const missing = [...new Set(rows)].filter((row) => !this.kept.has(row));
    for (let first = 0; first < missing.length; first += this.most) this.ask(missing.slice(first, first + this.most));
    const answer = await Promise.all(rows.map((row) => this.kept.get(row) as Promise<Series>));
    for (const row of this.kept.keys()) {
      if (this.kept.size <= KEPT) break;
      this.kept.delete(row);
    }
    return answer;
  }

  private ask(rows: number[]): void {
    const request = this.source.series(rows);
    rows.forEach((row, i) => {
      const one = request.then((series) => series[i]);
      one.catch(() => this.kept.delete(row)); // another try may succeed
      this.kept.set(row, one);
    });
  }
}
