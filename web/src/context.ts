/** The recording around the pinned window, in a drawer below the map. */

import { h, need, svg } from "./dom";
import { moment } from "./format";
import type { Session } from "./session";
import type { Context } from "./source";
import { grid, line, ranges, tallness } from "./strips";

const WIDTH = 1000;

export class ContextDrawer {
  private readonly drawer = need("context");
  private readonly body = need("context-body");
  private turn = 0;

  /** `covers` is told how many pixels of the map the drawer covers. */
  constructor(
    private readonly session: Session,
    private readonly covers: (height: number) => void,
  ) {
    const button = need<HTMLButtonElement>("show-context");
    session.about.follow((about) => (button.hidden = session.source.context === undefined || !about.series));
    button.addEventListener("click", () => void this.toggle());
    need("context-close").addEventListener("click", () => this.close());
    session.pinned.listen((row) => {
      if (row === null) this.close();
      else if (this.open) void this.show(row);
    });
  }

  get open(): boolean {
    return !this.drawer.hidden;
  }

  close(): void {
    this.turn++;
    this.drawer.hidden = true;
    this.covers(0);
  }

  async toggle(): Promise<void> {
    const row = this.session.pinned.value;
    if (this.open) this.close();
    else if (row !== null) await this.show(row);
  }

  private async show(row: number): Promise<void> {
    const turn = ++this.turn;
    await this.session.status.attempt(async () => {
      const context = await this.session.source.context?.(row).catch((error: unknown) => {
        if (turn === this.turn) this.close(); // what it shows is another window's recording
        throw error;
      });
      if (context === undefined || turn !== this.turn || this.session.pinned.value !== row) return;
      need("context-title").textContent = context.recording ?? `Around window ${row}`;
      this.body.replaceChildren(...this.draw(context));
      this.drawer.hidden = false;
      this.covers(this.drawer.offsetHeight);
    });
  }

  private draw({ row, time, window, channels }: Context): HTMLElement[] {
    const names = this.session.about.value.channels;
    const height = tallness(channels.length, 44, 150, 12);
    const each = height / channels.length;
    const scale = ranges([{ channels }]);
    const across = (index: number): number => (index / Math.max(1, time.length - 1)) * WIDTH;
    const [first, last] = window.map(across);
    const picture = svg(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${height}`,
        preserveAspectRatio: "none",
        height,
        role: "img",
        "aria-label": `The recording around window ${row}, which is marked`,
        class: "drawing wide",
      },
      grid(WIDTH, height, channels.length),
      svg("rect", { class: "mark", x: first, y: 0, width: Math.max(1, last - first), height }),
      ...channels.map((values, i) =>
        svg("path", { class: "trace", d: line(values, scale[i], WIDTH, (i + 0.1) * each, 0.8 * each) }),
      ),
    );
    const labels = h("div", { class: "strip-names" }, ...names.map((name) => h("div", {}, h("span", { title: name }, name))));
    labels.style.height = `${height}px`;
    const ticks = h("div", { class: "ticks" });
    for (let i = 0; i <= 4; i++) ticks.append(h("span", {}, moment(time[Math.round((i / 4) * (time.length - 1))])));
    return [h("div", { class: "strips wide" }, labels, picture), ticks];
  }
}
