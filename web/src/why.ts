/** Why a window is what it is: the stretches that made the difference, and the nearest windows that have a label. */

import type { SeriesCache } from "./cache";
import { h, need } from "./dom";
import { address, number } from "./format";
import type { Session } from "./session";
import type { Why } from "./source";

export function startWhy(session: Session, cache: SeriesCache): () => void {
  const button = need<HTMLButtonElement>("show-why");
  const place = need("why");
  const ask = (): void => {
    const row = session.pinned.value;
    if (session.source.why === undefined || row === null) return;
    if (session.why.value !== null) {
      session.why.value = null;
      return;
    }
    button.disabled = true;
    session.status.busy("Blanking one stretch after the other to see what changes …");
    const answer = session.status.attempt(async () => {
      const found = await session.source.why?.(row);
      if (found === undefined || session.pinned.value !== row) return;
      session.why.value = found;
      session.status.say(found.sentence);
    });
    void answer.finally(() => (button.disabled = false));
  };
  const draw = async (found: Why | null): Promise<void> => {
    button.setAttribute("aria-pressed", String(found !== null));
    place.hidden = found === null;
    if (found === null) return;
    place.replaceChildren(h("p", {}, found.sentence), h("p", { class: "hint" }, "Green stretches add to it, the darker the more; red ones take away."));
    const series = await cache.get(found.nearest.map(({ row }) => row));
    if (session.why.value !== found) return;
    const near = found.nearest.map(({ row, distance, label }, i) =>
      h(
        "button",
        { type: "button", class: "doubt", "data-row": row, click: () => (session.pinned.value = row) },
        h("span", { class: "doubt-names" }, h("strong", {}, label)),
        h("span", { class: "doubt-place" }, address(series[i]) || `Window ${row}`),
        h("span", { class: "count" }, number(distance)),
      ),
    );
    if (near.length > 0) place.append(h("h2", {}, "Nearest with a label"), h("div", { class: "doubt-list" }, ...near));
  };
  button.hidden = session.source.why === undefined;
  button.addEventListener("click", ask);
  session.why.listen((found) => void session.status.attempt(() => draw(found)));
  return ask;
}
