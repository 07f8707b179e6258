/** What can be done with the windows that the lasso circled. */

import { h, need } from "./dom";
import { labeller } from "./labeller";
import type { Session } from "./session";
import { windows } from "./status";

export class SelectionBar {
  private readonly bar = need("selection");

  constructor(private readonly session: Session) {
    const count = h("strong", { class: "selected-count" });
    const exporter = h("button", { type: "button", id: "export-selection", click: () => void this.save() }, "Export csv");
    const clear = h("button", { type: "button", class: "quiet", click: () => (session.selection.value = []) }, "Clear");
    const give = (name: string | null): boolean => {
      void session.status.attempt(() => session.label(session.selection.value, name));
      return true;
    };
    this.bar.append(count, labeller(session, give), h("div", { class: "actions" }, exporter, clear));
    session.selection.follow((rows) => {
      this.bar.hidden = rows.length === 0;
      count.textContent = `${windows(rows.length)} selected`;
    });
    // In a notebook the page lies in the frame of a widget, which hands the rows on.
    if (parent !== window) session.selection.listen((rows) => parent.postMessage({ dicot: "selection", rows }, "*"));
  }

  /** Saves the selection, or everything labelled where nothing is selected. */
  async save(): Promise<void> {
    const { session } = this;
    await session.status.attempt(async () => {
      const { table, count } = await session.export();
      const address = URL.createObjectURL(table);
      h("a", { href: address, download: "windows.csv" }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
      session.status.say(`Exported ${windows(count)} to windows.csv.`);
    });
  }
}
