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
    const give = (name: string | null): void => void session.status.attempt(() => session.label(session.selection.value, name));
    this.bar.append(count, labeller(session, give), h("div", { class: "actions" }, exporter, clear));
    session.selection.follow((rows) => {
      this.bar.hidden = rows.length === 0;
      count.textContent = `${windows(rows.length)} selected`;
    });
  }

  /** Saves the selection, or everything labelled where nothing is selected. */
  async save(): Promise<void> {
    const { selection, labelled, status, source } = this.session;
    const rows = selection.value.length > 0 ? selection.value : [...labelled.value].sort((a, b) => a - b);
    await status.attempt(async () => {
      if (rows.length === 0) throw new Error("There is nothing to export: select windows with the lasso, or label some.");
      const address = URL.createObjectURL(await source.export(rows));
      h("a", { href: address, download: "windows.csv" }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
      status.say(`Exported ${windows(rows.length)} to windows.csv.`);
    });
  }
}
