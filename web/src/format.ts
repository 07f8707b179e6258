/** Numbers and times as people read them. */

import type { Column, Time, Window } from "./source";

/** A number with as many digits as tell it apart from its neighbours. */
export function number(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(1);
  return String(Number(value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3)));
}

/** Seconds to the millisecond. */
export function seconds(value: number): string {
  return String(Number(value.toFixed(3)));
}

/** A time as the file has it: "12.5 s" or a date. */
export function moment(value: Time): string {
  return typeof value === "number" ? `${seconds(value)} s` : value.replace("T", " ");
}

/** "walk_01@12.5", as the search box takes it; empty where the file has no times. */
export function address({ recording, start }: Pick<Window, "recording" | "start">): string {
  if (recording === null || start === null) return "";
  return `${recording}@${typeof start === "number" ? seconds(start) : start}`;
}

/** "12.5–15.06 s" or "2024-03-01 12:00:05–12:00:08"; empty where the file has no times. */
export function span({ start, end }: Pick<Window, "start" | "end">): string {
  if (start === null) return "";
  if (end === null) return moment(start);
  if (typeof start === "number" && typeof end === "number") return `${seconds(start)}–${seconds(end)} s`;
  const [from, to] = [moment(start), moment(end)];
  return `${from}–${from.slice(0, 10) === to.slice(0, 10) ? to.slice(11) : to}`;
}

/** Seconds since 1970 as "2024-03-01 12:00:05", in UTC. */
export function utc(value: number): string {
  return new Date(Math.round(value * 1000)).toISOString().slice(0, 19).replace("T", " ");
}

/** A number of a column as its kind is read. */
export function show(column: Column, value: number): string {
  if (column.kind === "time") return utc(value);
  return column.name === "start" ? seconds(value) : number(value);
}
