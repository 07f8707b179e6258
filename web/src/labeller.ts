/** Buttons and a field that give a name to some windows: the known names with their keys, or a new one. */

import { h } from "./dom";
import type { Session } from "./session";

export const KEYS = 9;

/** Is told the chosen name, or null for "no label"; answers whether there was a window to give it to. */
export type Give = (name: string | null) => boolean;

export function labeller(session: Session, give: Give): HTMLElement {
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Known labels" });
  const field = h("input", {
    class: "new-name",
    type: "text",
    maxlength: 200,
    placeholder: "New label",
    "aria-label": "New label",
    autocomplete: "off",
    spellcheck: "false",
    list: "known-names",
  });
  const form = h(
    "form",
    {
      class: "name-form",
      submit: (event: Event) => {
        event.preventDefault();
        const name = field.value.trim();
        if (name === "" || !give(name)) return; // what was typed stays until it can be given
        field.value = "";
        field.blur();
      },
    },
    field,
    h("button", { type: "submit" }, "Label"),
  );
  const remove = h("button", { type: "button", class: "quiet", click: () => give(null) }, "No label");
  session.names.follow((names) => {
    chips.replaceChildren(
      ...names.slice(0, KEYS).map((name, i) =>
        h("button", { type: "button", class: "chip", click: () => give(name) }, h("kbd", {}, String(i + 1)), name),
      ),
    );
    chips.hidden = names.length === 0;
  });
  return h("div", { class: "labeller" }, chips, h("div", { class: "labeller-new" }, form, remove));
}
