/** The explorer: puts the parts together. */

import { SeriesCache } from "./cache";
import { palette } from "./colour";
import { ContextDrawer } from "./context";
import { verdictTables } from "./verdict";
import { h, need } from "./dom";
import { DoubtList } from "./doubts";
import { Filters } from "./filters";
import { HttpSource, takeToken } from "./http";
import { InlineSource, readInline } from "./inline";
import { type Key, startKeys } from "./keys";
import { type Give, KEYS } from "./labeller";
import { Legend } from "./legend";
import { PointMap } from "./map/map";
import { Memory } from "./memory";
import { Panel } from "./panel";
import { Queue } from "./queue";
import { Reader } from "./recording/reader";
import { startSearch } from "./search";
import { SelectionBar } from "./selection";
import { Session } from "./session";
import type { Signal } from "./signal";
import type { Source } from "./source";
import { Status, windows } from "./status";
import { Table } from "./table";
import { startTheme } from "./theme";
import { startWhy } from "./why";

/** A handle for tests and for the browser's console. */
export interface Handle {
  /** Fulfilled when the map is drawn, though #map is aria-busy as long as points are missing; rejected with the sentence that the page shows. */
  ready: Promise<void>;
  /** Where a window's point is, in pixels of the browser window. */
  screen(row: number): { x: number; y: number };
  /** Where a time of the recording is that is open. */
  moment(time: number): { x: number; labels: number; predictions: number };
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
  const memory = new Memory(`${about.title} ${about.n}`);
  const queue = new Queue(session, (rows) => panel.prepare(rows));
  const doubts = new DoubtList(session, cache);
  const labelPinned: Give = (name) => {
    const row = session.onScreen;
    if (row === null) return false;
    const labelling = session.label([row], name);
    if (name !== null) queue.done(row); // without waiting for the answer
    if (name !== null) doubts.done(row);
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
  startStores(session);
  const filters = new Filters(session, memory);
  const table = new Table(session, memory);
  const why = startWhy(session, cache);
  const reader = startReader(session, dark, queue);
  startKeys(keyTable({ session, map, panel, queue, doubts, bar, drawer, reader, filters, table, why, labelPinned }), reader);
  await Promise.all([session.loadLabels(), firstColours(session, memory.last.colour), filters.restore()]);
  session.colouring.listen((now) => memory.keep({ colour: now?.column.name }));
  const pinned = memory.last.pinned ?? null;
  session.pinned.listen((row) => memory.keep({ pinned: row }));
  if (pinned !== null && pinned < about.n) session.pinned.value = pinned;
  await reader?.restore();
  window.dicot.screen = (row) => map.screen(row);
  if (reader !== null) window.dicot.moment = (time) => reader.screen(time);
  window.dicot.select = (rows) => (session.selection.value = rows);
  window.dicot.pin = (row) => (session.pinned.value = row);
  return session;
}

function startMap(session: Session, points: Float32Array, dark: Signal<boolean>): PointMap {
  const button = need("lasso");
  const map = new PointMap(need("map"), {
    hover: (row) => (session.hovered.value = row),
    click: (row) => (session.pinned.value = row === session.pinned.value ? null : row),
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
  const paint = (same: boolean): void => {
    const colouring = session.colouring.value;
    if (colouring !== null) map.setColours(colouring.indices, palette(colouring.column.kind, dark.value), same);
  };
  session.colouring.listen((now, before) => paint(now?.column.name === before?.column.name));
  dark.listen(() => paint(false));
  session.hidden.listen((hidden) => map.setHidden(hidden));
  session.selection.listen((rows) => map.setSelection(rows));
  session.labelled.listen((rows) => map.setMarked(rows));
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

/** The large view of recordings, where they are at hand. */
function startReader(session: Session, dark: Signal<boolean>, queue: Queue): Reader | null {
  const { recordings } = session.source;
  const there = recordings !== undefined && session.about.value.recordings === true;
  const reader = there ? new Reader(session, recordings, dark, () => void undoLast(session, queue)) : null;
  for (const name of ["open-recording", "recordings-button"]) {
    need(name).hidden = reader === null;
    need(name).addEventListener("click", () => void reader?.enter());
  }
  return reader;
}

/** As they were, or labels first where there are any, since they are what the user works on. */
async function firstColours(session: Session, last: string | undefined): Promise<void> {
  const { columns } = session.about.value;
  const some = (name: string): boolean => (session.column(name)?.categories?.length ?? 0) > 0;
  const kept = last !== undefined && session.column(last) !== undefined ? last : undefined;
  const first = kept ?? ["label", "prediction", "cluster"].find(some) ?? columns[0]?.name;
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
    need("verdict-tables").replaceChildren(...verdictTables(verdict));
    need("verdict").hidden = false;
    status.say("The map shows the predictions.");
  });
}

/** How far the labels of others agree with these. */
function startStores(session: Session): void {
  session.about.follow(({ stores }) => {
    need("stores").hidden = stores.length === 0;
    need("stores").replaceChildren(
      ...stores.map(({ name, both, same, kappa, sentence }) => {
        const agreed = both === 0 ? "nothing in common" : `${same} of ${both}`;
        const size = typeof kappa === "number" ? `κ ${kappa.toFixed(2)}` : "";
        return h("p", { title: sentence ?? "No window was labelled by both." }, h("span", { class: "entry-name" }, name), h("strong", {}, size), h("span", { class: "count" }, agreed));
      }),
    );
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
  doubts: DoubtList;
  bar: SelectionBar;
  drawer: ContextDrawer;
  reader: Reader | null;
  filters: Filters;
  table: Table;
  why(): void;
  labelPinned: Give;
}

function keyTable({ session, map, panel, queue, doubts, bar, drawer, reader, filters, table, why, labelPinned }: Parts): Key[] {
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
    if (filters.open) filters.close();
    else if (document.activeElement instanceof HTMLInputElement) document.activeElement.blur();
    else if (map.lasso) map.lasso = false;
    else if (drawer.open) drawer.close();
    else if (session.selection.value.length > 0) session.selection.value = [];
    else if (queue.active) queue.stop();
    else if (doubts.active) doubts.stop();
    else session.pinned.value = null;
  };
  const name = (): void => {
    const place = session.selection.value.length > 0 ? need("selection") : need("pinned-label");
    place.querySelector<HTMLInputElement>(".new-name")?.focus();
  };
  const pan: Record<string, [number, number]> = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  const digits = Array.from({ length: KEYS }, (_, i) => String(i + 1));
  const { suggest, context } = session.source;
  const keys: (Key | false)[] = [
    { keys: ["l"], shown: "l", does: "lasso: draw around windows (or hold Shift)", run: () => (map.lasso = !map.lasso) },
    { keys: digits, shown: "1 … 9", does: "label the selection, or the pinned window", run: labelBy },
    { keys: ["n"], shown: "n", does: "name a new label", run: name },
    suggest !== undefined && { keys: ["q"], shown: "q", does: "suggest what to label next", run: () => void queue.start() },
    suggest !== undefined && { keys: ["s"], shown: "s", does: "skip the suggestion", run: () => queue.skip() },
    session.source.doubts !== undefined && {
      keys: ["w"],
      shown: "w",
      does: "list labels that are probably wrong",
      run: () => (doubts.active ? doubts.stop() : void doubts.start()),
    },
    session.source.doubts !== undefined && { keys: ["c"], shown: "c", does: "confirm the label in that list", run: () => doubts.answer("confirm") },
    session.source.doubts !== undefined && { keys: ["a"], shown: "a", does: "take the label that the list suggests", run: () => doubts.answer("change") },
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
    reader !== null && { keys: ["o"], shown: "o", does: "open its whole recording, to label ranges", run: () => void reader.enter() },
    session.source.why !== undefined && { keys: ["y"], shown: "y", does: "why: what made the difference to the pinned window", run: why },
    { keys: ["f"], shown: "f", does: "filter windows", run: () => filters.toggle() },
    { keys: ["x"], shown: "x", does: "clear all filters", run: () => filters.clear() },
    { keys: ["t"], shown: "t", does: "table of the windows that are shown", run: () => table.toggle() },
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
    { keys: ["Escape"], shown: "Esc", does: "step back: filter, lasso, recording, selection, list, pin", run: away },
  ];
  return keys.filter((key) => key !== false);
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
window.dicot = { ready, screen: early, moment: early, select: early, pin: early };
