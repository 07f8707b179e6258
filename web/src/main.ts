/** The explorer: puts the parts together. */

import { SeriesCache } from "./cache";
import { palette } from "./colour";
import { ContextDrawer } from "./context";
import { h, need } from "./dom";
import { HttpSource, takeToken } from "./http";
import { InlineSource, readInline } from "./inline";
import { type Key, startKeys } from "./keys";
import { type Give, KEYS } from "./labeller";
import { Legend } from "./legend";
import { PointMap } from "./map/map";
import { Panel } from "./panel";
import { Queue } from "./queue";
import { startSearch } from "./search";
import { SelectionBar } from "./selection";
import { Session } from "./session";
import type { Signal } from "./signal";
import type { Source } from "./source";
import { Status, windows } from "./status";
import { startTheme } from "./theme";

/** A handle for tests and for the browser's console. */
export interface Handle {
  /** Fulfilled when the map is drawn; rejected with the sentence that the page shows. */
  ready: Promise<void>;
  /** Where a window's point is, in pixels of the browser window. */
  screen(row: number): { x: number; y: number };
  /** Selects windows as the lasso does. */
  select(rows: number[]): void;
  /** Pins a window as a click does, or none. */
  pin(row: number | null): void;
}

declare global {
  interface Window {
    dicot: Handle;
  }
}

function openSource(): Source {
  const page = readInline();
  if (page === null) return new HttpSource(takeToken());
  const source = new InlineSource(page);
  addEventListener("beforeunload", (event) => {
    if (source.unsaved) event.preventDefault();
  });
  return source;
}

async function start(status: Status, dark: Signal<boolean>): Promise<Session> {
  const source = openSource();
  const [about, points] = await Promise.all([source.about(), source.points()]);
  document.title = `${about.title} · dicot explorer`;
  need("title").textContent = about.title;
  need("size").textContent = windows(about.n);
  if (about.n === 0) throw new Error("This file has no windows. Write one with `dicot embed` and open that.");
  const session = new Session(source, status, about);
  const map = startMap(session, points, dark);
  const cache = new SeriesCache(source, about.limits.series_rows);
  const queue = new Queue(session);
  const labelPinned: Give = (name) => {
    const row = session.onScreen;
    if (row === null) return false;
    const labelling = session.label([row], name);
    if (name !== null) queue.done(row); // without waiting for the answer
    void status.attempt(() => labelling).then(() => labelling.catch(() => queue.back(row)));
    return true;
  };
  const panel = new Panel(session, cache, dark, labelPinned);
  const bar = new SelectionBar(session);
  const drawer = new ContextDrawer(session, (height) => {
    map.covered = height;
    if (height > 0 && session.pinned.value !== null) map.show(session.pinned.value);
  });
  new Legend(session, dark);
  startSearch(session);
  startTools(session, bar, queue);
  if (parent !== window) session.selection.listen((rows) => parent.postMessage({ dicot: "selection", rows }, "*")); // the widget
  startKeys(keyTable({ session, map, panel, queue, bar, drawer, labelPinned }));
  await Promise.all([session.loadLabels(), firstColours(session)]);
  window.dicot.screen = (row) => map.screen(row);
  window.dicot.select = (rows) => (session.selection.value = rows);
  window.dicot.pin = (row) => (session.pinned.value = row);
  return session;
}

function startMap(session: Session, points: Float32Array, dark: Signal<boolean>): PointMap {
  const button = need("lasso");
  const map = new PointMap(need("map"), {
    hover: (row) => (session.hovered.value = row),
    click: (row) => (session.pinned.value = row),
    lasso: (rows) => {
      session.selection.value = rows;
      session.status.say(rows.length === 0 ? "The lasso holds no window." : `Selected ${windows(rows.length)}.`);
    },
    mode: (lasso) => {
      button.setAttribute("aria-pressed", String(lasso));
      if (lasso) session.status.say("Draw around the windows to select.");
    },
  });
  map.setPoints(points);
  const paint = (): void => {
    const colouring = session.colouring.value;
    if (colouring !== null) map.setColours(colouring.indices, palette(colouring.column.kind, dark.value));
  };
  session.colouring.listen(paint);
  dark.listen(paint);
  session.hidden.listen((hidden) => map.setHidden(hidden));
  session.selection.listen((rows) => map.setSelection(rows));
  session.hovered.listen((hovered) => map.setMarks({ hovered }));
  session.neighbours.listen((neighbours) => map.setMarks({ neighbours }));
  session.stepped.listen((stepped) => map.setMarks({ stepped }));
  session.pinned.listen((pinned) => {
    map.setMarks({ pinned });
    if (pinned !== null) map.show(pinned);
  });
  button.addEventListener("click", () => (map.lasso = !map.lasso));
  need("zoom-in").addEventListener("click", () => map.zoom(1.5));
  need("zoom-out").addEventListener("click", () => map.zoom(1 / 1.5));
  need("zoom-reset").addEventListener("click", () => map.reset());
  return map;
}

/** Labels first where there are any, since they are what the user works on. */
async function firstColours(session: Session): Promise<void> {
  const { columns } = session.about.value;
  const some = (name: string): boolean => (session.column(name)?.categories?.length ?? 0) > 0;
  const first = ["label", "prediction", "cluster"].find(some) ?? columns[0]?.name;
  if (first !== undefined) await session.colourBy(first);
}

function startTools(session: Session, bar: SelectionBar, queue: Queue): void {
  const { status, source } = session;
  const undo = need<HTMLButtonElement>("undo");
  session.canUndo.follow((can) => (undo.disabled = !can));
  undo.addEventListener("click", () => void undoLast(session, queue));
  need("export").addEventListener("click", () => void bar.save());
  session.names.follow((names) => need("known-names").replaceChildren(...names.map((name) => h("option", { value: name }))));
  const train = need<HTMLButtonElement>("train");
  train.hidden = source.classify === undefined;
  need("verdict-close").addEventListener("click", () => (need("verdict").hidden = true));
  train.addEventListener("click", async () => {
    train.disabled = true;
    status.busy("Training a classifier on the labels and testing it on labels it has not seen …");
    const verdict = await status.attempt(() => session.classify());
    train.disabled = false;
    if (verdict === undefined) return;
    need("verdict-sentence").textContent = verdict.sentence;
    need("verdict-warnings").replaceChildren(...verdict.warnings.map((warning) => h("li", {}, warning)));
    need("verdict").hidden = false;
    status.say("The map shows the predictions.");
  });
}

async function undoLast(session: Session, queue: Queue): Promise<void> {
  const undone = await session.status.attempt(() => session.undo());
  if (undone?.length === 1) queue.back(undone[0]);
}

interface Parts {
  session: Session;
  map: PointMap;
  panel: Panel;
  queue: Queue;
  bar: SelectionBar;
  drawer: ContextDrawer;
  labelPinned: Give;
}

function keyTable({ session, map, panel, queue, bar, drawer, labelPinned }: Parts): Key[] {
  const labelBy = (event: KeyboardEvent): void => {
    const name = session.names.value[Number(event.key) - 1];
    const rows = session.selection.value;
    if (name === undefined) session.status.say(`There is no label ${event.key} yet: press n and name one.`);
    else if (rows.length > 0) void session.status.attempt(() => session.label(rows, name));
    else if (session.pinned.value !== null) labelPinned(name);
    else session.status.say("Click a window or draw a lasso first; keys 1 to 9 label it.");
  };
  const step = (by: number): void => {
    const rows = session.neighbours.value;
    if (session.pinned.value === null || rows.length === 0) {
      session.status.say("Press Enter to pin the window in the middle of the map; arrow keys then step through its neighbours.");
      return;
    }
    const at = session.stepped.value === null ? (by > 0 ? -1 : 0) : rows.indexOf(session.stepped.value);
    panel.focus(rows[(at + by + rows.length) % rows.length]);
  };
  const away = (): void => {
    if (document.activeElement instanceof HTMLInputElement) document.activeElement.blur();
    else if (map.lasso) map.lasso = false;
    else if (drawer.open) drawer.close();
    else if (session.selection.value.length > 0) session.selection.value = [];
    else if (queue.active) queue.stop();
    else session.pinned.value = null;
  };
  const name = (): void => {
    const place = session.selection.value.length > 0 ? need("selection") : need("pinned-label");
    place.querySelector<HTMLInputElement>(".new-name")?.focus();
  };
  const pan: Record<string, [number, number]> = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  const digits = Array.from({ length: KEYS }, (_, i) => String(i + 1));
  const { suggest, context } = session.source;
  const table: (Key | false)[] = [
    { keys: ["l"], shown: "l", does: "lasso: draw around windows (or hold Shift)", run: () => (map.lasso = !map.lasso) },
    { keys: digits, shown: "1 … 9", does: "label the selection, or the pinned window", run: labelBy },
    { keys: ["n"], shown: "n", does: "name a new label", run: name },
    suggest !== undefined && { keys: ["q"], shown: "q", does: "suggest what to label next", run: () => void queue.start() },
    suggest !== undefined && { keys: ["s"], shown: "s", does: "skip the suggestion", run: () => queue.skip() },
    { keys: ["u", "Ctrl+z"], shown: "u Ctrl+z", does: "undo the last labels", run: () => void undoLast(session, queue) },
    { keys: ["e"], shown: "e", does: "export the selection, or all labelled windows", run: () => void bar.save() },
    { keys: ["ArrowRight", "ArrowDown"], shown: "→ ↓", does: "next neighbour", run: () => step(1) },
    { keys: ["ArrowLeft", "ArrowUp"], shown: "← ↑", does: "previous neighbour", run: () => step(-1) },
    {
      keys: ["Enter"],
      shown: "Enter",
      does: "pin that neighbour, or the window in the middle",
      run: () => (session.pinned.value = session.stepped.value ?? session.pinned.value ?? map.middle()),
    },
    context !== undefined && { keys: ["r"], shown: "r", does: "show the pinned window in its recording", run: () => void drawer.toggle() },
    { keys: ["/"], shown: "/", does: "search", run: () => need("search").focus() },
    { keys: ["+", "="], shown: "+", does: "closer", run: () => map.zoom(1.5) },
    { keys: ["-"], shown: "-", does: "farther", run: () => map.zoom(1 / 1.5) },
    { keys: ["0"], shown: "0", does: "the whole map", run: () => map.reset() },
    {
      keys: Object.keys(pan).map((key) => `Shift+${key}`),
      shown: "Shift+arrow",
      does: "move the map",
      run: (event) => map.pan(...pan[event.key]),
    },
    { keys: ["Escape"], shown: "Esc", does: "step back: lasso, recording, selection, pin", run: away },
  ];
  return table.filter((key) => key !== false);
}

const status = new Status();
const ready = start(status, startTheme()).then((session) => {
  need("loading").hidden = true;
  const { labelled, about, source } = session;
  const how = source.classify ? "labelled by hand" : "labelled"; // an exported page does not know by whom
  status.say(`${windows(about.value.n)}, ${labelled.value.length.toLocaleString("en")} ${how}. Hover to look, click to pin, ? for keys.`);
});
ready.catch((error: unknown) => {
  status.fail(error);
  need("loading").classList.add("failed");
  need("loading-text").textContent = error instanceof Error ? error.message : String(error);
});
const early = (): never => {
  throw new Error("Await dicot.ready first.");
};
window.dicot = { ready, screen: early, select: early, pin: early };
