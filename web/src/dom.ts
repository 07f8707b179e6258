/** Elements made and found in one line. */

type Child = Node | string | null | false;
type Props = Record<string, string | number | boolean | ((event: never) => void)>;

/** Makes an element: functions are listeners ("click"), true and false set or leave out an attribute. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(name, value as (event: Event) => void);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== false));
  return element;
}

/** Makes an element of a drawing. */
export function svg(tag: string, props: Record<string, string | number>, ...children: Node[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** An element that index.html promises. */
export function need<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`index.html has no element #${id}`);
  return element as T;
}
