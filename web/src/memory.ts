/** What the page looks like, kept in the tab: a reload finds it again. Labels are not here; they are in their store. */

const KEY = "dicot-view";

export interface Kept {
  colour?: string | undefined;
  filters?: unknown;
  table?: boolean;
  sort?: { name: string; descending: boolean } | null;
  pinned?: number | null;
}

/** A page opened from a file may have no storage; it then begins anew. */
export class Memory {
  private kept: Kept = {};

  /** `what` names the windows: what was kept of others does not count. */
  constructor(private readonly what: string) {
    try {
      const { what: of, ...kept } = JSON.parse(sessionStorage.getItem(KEY) ?? "{}") as Kept & { what?: string };
      if (of === what) this.kept = kept;
    } catch {
      // nothing was kept
    }
  }

  get last(): Readonly<Kept> {
    return this.kept;
  }

  keep(changed: Kept): void {
    this.kept = { ...this.kept, ...changed };
    try {
      sessionStorage.setItem(KEY, JSON.stringify({ ...this.kept, what: this.what }));
    } catch {
      // the view lasts as long as the page
    }
  }
}
