/** Light or dark: as the system has it, until the user says otherwise. */

import { need } from "./dom";
import { Signal } from "./signal";

const KEY = "dicot-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

export function startTheme(): Signal<boolean> {
  const root = document.documentElement;
  const dark = new Signal(chosen() === "dark" || (chosen() === null && system.matches));
  const button = need<HTMLButtonElement>("theme");
  dark.follow((on) => {
    root.dataset.theme = on ? "dark" : "light";
    button.setAttribute("aria-pressed", String(on));
  });
  system.addEventListener("change", () => {
    if (chosen() === null) dark.value = system.matches;
  });
  button.addEventListener("click", () => {
    dark.value = !dark.value;
    keep(dark.value ? "dark" : "light");
  });
  return dark;
}

// A page opened from a file may have no storage; the choice then lasts as long as the page.
function chosen(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function keep(theme: string): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    return;
  }
}
