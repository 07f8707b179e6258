/** How each class fares: recall and precision, and which classes are taken for which. */

import { h } from "./dom";
import type { Verdict } from "./source";

const MOST = 12; // classes of a confusion matrix that the panel has room for

export function verdictTables({ classes, confusion }: Verdict): HTMLElement[] {
  if (classes.length === 0) return [];
  const heads = ["class", "labels", "found (recall)", "right (precision)"];
  const rows = classes.map(({ label, cases, recall, precision }) => [cell(label), cell(count(cases)), cell(percent(recall)), cell(percent(precision))]);
  const scores = table("verdict-classes", "Each class, by labels that were hidden", heads, rows);
  if (classes.length > MOST) return [scores];
  const names = classes.map(({ label }) => label);
  const answers = confusion.map((row, truth) => [
    cell(names[truth]),
    ...row.map((cases, answer) => h("td", { class: answer === truth ? "hit" : cases === 0 ? "none" : "" }, count(cases))),
  ]);
  return [scores, table("verdict-confusion", "What they are (rows), and what was answered (columns)", ["", ...names], answers)];
}

function table(id: string, caption: string, heads: string[], rows: HTMLElement[][]): HTMLElement {
  const head = h("thead", {}, h("tr", {}, ...heads.map((name) => h("th", { scope: "col" }, name))));
  const named = rows.map(([first, ...others]) => h("tr", {}, h("th", { scope: "row" }, first.textContent ?? ""), ...others));
  return h("div", { class: "verdict-table", id }, h("table", {}, h("caption", {}, caption), head, h("tbody", {}, ...named)));
}

function cell(text: string): HTMLElement {
  return h("td", {}, text);
}

function count(cases: number): string {
  return String(Number(cases.toFixed(1)));
}

function percent(share: number | null): string {
  return share === null ? "not known" : `${(100 * share).toFixed(0)} %`;
}
