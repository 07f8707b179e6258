/** The search box: `recording@time` pins the window there. */

import { h, need } from "./dom";
import type { Session } from "./session";

export function startSearch(session: Session): void {
  const field = need<HTMLInputElement>("search");
  session.about.follow(({ columns }) => {
    const recordings = columns.find(({ name }) => name === "recording")?.categories ?? [];
    need("recordings").replaceChildren(...recordings.slice(0, 1000).map((name) => h("option", { value: `${name}@` })));
  });
  need("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    void session.status.attempt(async () => {
      const text = field.value.trim();
      const cut = text.lastIndexOf("@");
      const [recording, time] = [text.slice(0, cut).trim(), text.slice(cut + 1).trim()];
      if (cut < 1 || time === "") throw new Error("Write a recording, “@” and a time, for example walk_01@12.5");
      const overtaken = session.seek();
      const row = await session.source.find(recording, time);
      if (overtaken()) return;
      session.pinned.value = row;
      session.status.say(`Pinned the window of ${recording} at ${time}.`);
      field.blur();
    });
  });
}
