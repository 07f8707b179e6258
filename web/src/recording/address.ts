/** What the large view shows, in the address: a reload or a bookmark comes back to it. Other words there stay. */

import type { Range } from "../strips";

export interface Place {
  recording: string;
  from: number | null;
  to: number | null;
  hidden: string[];
  /** The scale of channels that are not drawn from least to greatest value. */
  scale: Map<string, Range>;
}

const OWN = ["recording", "from", "to", "hide", "scale"];

export function readPlace(): Place | null {
  const words = new URLSearchParams(location.hash.slice(1));
  const recording = words.get("recording");
  if (recording === null) return null;
  const time = (name: string): number | null => {
    const value = Number.parseFloat(words.get(name) ?? "");
    return Number.isFinite(value) ? value : null;
  };
  const scale = new Map<string, Range>();
  for (const word of words.getAll("scale")) {
    const [, low, high, name] = /^([^,]+),([^,]+),(.+)$/.exec(word) ?? [];
    if (Number(low) < Number(high)) scale.set(name, { low: Number(low), high: Number(high) });
  }
  return { recording, from: time("from"), to: time("to"), hidden: words.getAll("hide"), scale };
}

export function writePlace(place: Place | null): void {
  const words = new URLSearchParams(location.hash.slice(1));
  for (const name of OWN) words.delete(name);
  if (place !== null) {
    words.set("recording", place.recording);
    if (place.from !== null) words.set("from", String(place.from));
    if (place.to !== null) words.set("to", String(place.to));
    for (const name of place.hidden) words.append("hide", name);
    for (const [name, { low, high }] of place.scale) words.append("scale", `${low},${high},${name}`);
  }
  const text = words.toString();
  history.replaceState(null, "", text === "" ? location.pathname + location.search : `#${text}`);
}
