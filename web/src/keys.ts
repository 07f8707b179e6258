/** All keys in one table: what the page does on them is what its help shows. */

import { h, need } from "./dom";

export interface Key {
  /** As KeyboardEvent.key has them; "Ctrl+z" also means the command key of a Mac. */
  keys: string[];
  shown: string;
  does: string;
  run(event: KeyboardEvent): void;
}

/** Keys that take the place of the page's while something lies over it. */
export interface Layer {
  open: boolean;
  keys: Key[];
}

export function startKeys(table: Key[], layer: Layer | null): void {
  const help = need<HTMLDialogElement>("help");
  const open = (): void => {
    need("help-keys").replaceChildren(...rows(layer?.open ? over : all));
    help.showModal();
  };
  const all: Key[] = [...table, { keys: ["?"], shown: "?", does: "show these keys", run: open }];
  const over = layer === null ? [] : [...layer.keys, all[all.length - 1]];
  const rows = (keys: Key[]): HTMLElement[] =>
    keys
      .filter(({ shown }) => shown !== "")
      .map(({ shown, does }) => h("div", {}, h("dt", {}, ...shown.split(" ").map((key) => h("kbd", {}, key))), h("dd", {}, does)));
  need("show-help").addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLElement && event.target.matches("input, select, textarea");
    if (help.open || event.altKey || (typing && event.key !== "Escape")) return;
    const control = event.ctrlKey || event.metaKey ? "Ctrl+" : "";
    const shift = event.shiftKey && event.key.startsWith("Arrow") ? "Shift+" : ""; // of other keys it makes another key
    const name = control + shift + event.key;
    const found = (layer?.open ? over : all).find(({ keys }) => keys.includes(name));
    if (found === undefined) return;
    if (event.key === "Enter" && event.target instanceof HTMLButtonElement) return; // the button's own key
    event.preventDefault();
    found.run(event);
  });
}
