/** The server of `dicot explore` as a source. */

import { HttpRecordings } from "./recording/source";
import type { Labels } from "./labels";
import type { About, Codes, Column, Context, Doubts, Neighbours, Series, Source, Suggestions, Verdict, Why } from "./source";

const KEY = "dicot-token";

/** Takes the token out of the address bar, where it could be copied by mistake; a reload finds it in the tab's storage. */
export function takeToken(): string {
  const address = new URL(location.href);
  const token = address.searchParams.get("token");
  if (token === null) return sessionStorage.getItem(KEY) ?? "";
  sessionStorage.setItem(KEY, token);
  address.searchParams.delete("token");
  history.replaceState(null, "", address);
  return token;
}

export class HttpSource implements Source {
  readonly recordings = new HttpRecordings((path, body) => this.ask(path, body));

  constructor(private readonly token: string) {}

  private async ask(path: string, body?: unknown): Promise<Response> {
    const headers: Record<string, string> = { "X-Dicot-Token": this.token };
    const init: RequestInit = { headers, cache: "no-store" };
    if (body !== undefined) {
      init.method = "POST";
      init.body = JSON.stringify(body);
      headers["Content-Type"] = "application/json";
    }
    let answer: Response;
    try {
      answer = await fetch(`/api/${path}`, init);
    } catch {
      throw new Error("The server does not answer. Is `dicot explore` still running?");
    }
    if (answer.ok) return answer;
    throw new Error(await sentence(answer));
  }

  private async json<T>(path: string, body?: unknown): Promise<T> {
    return (await (await this.ask(path, body)).json()) as T;
  }

  private async bytes(path: string): Promise<ArrayBuffer> {
    return (await this.ask(path)).arrayBuffer();
  }

  about(): Promise<About> {
    return this.json("about");
  }

  async points(): Promise<Float32Array> {
    return new Float32Array(await this.bytes("points"));
  }

  async column(column: Column): Promise<Codes> {
    const bytes = await this.bytes(`columns/${encodeURIComponent(column.name)}`);
    return column.kind === "category" ? new Int32Array(bytes) : new Float64Array(bytes);
  }

  async series(rows: number[]): Promise<Series[]> {
    return (await this.json<{ series: Series[] }>(`series?rows=${rows.join(",")}`)).series;
  }

  neighbours(row: number, k: number): Promise<Neighbours> {
    return this.json(`neighbours?row=${row}&k=${k}`);
  }

  async find(recording: string, time: string): Promise<number> {
    const query = new URLSearchParams({ recording, time });
    return (await this.json<{ row: number }>(`find?${query}`)).row;
  }

  labels(): Promise<Labels> {
    return this.json("labels");
  }

  label(rows: number[], name: string | null, confirm = false): Promise<Labels> {
    return this.json("labels", { rows, label: name, confirm });
  }

  undo(): Promise<Labels & { undone: number[]; any?: boolean }> {
    return this.json("undo", {});
  }

  async export(rows: number[]): Promise<Blob> {
    return (await this.ask("export", { rows })).blob();
  }

  context(row: number): Promise<Context> {
    return this.json(`context?row=${row}`);
  }

  suggest(k: number, hidden: Uint8Array | null): Promise<Suggestions> {
    return this.json("suggest", { k, hidden: hidden === null ? null : bits(hidden) });
  }

  classify(): Promise<Verdict> {
    return this.json("classify", {});
  }

  doubts(): Promise<Doubts> {
    return this.json("doubts", {});
  }

  why(row: number): Promise<Why> {
    return this.json(`why?row=${row}`);
  }
}

/** Ones and zeros as bits, the first of a byte lowest, in base64. */
function bits(flags: Uint8Array): string {
  const bytes = new Uint8Array(Math.ceil(flags.length / 8));
  for (let i = 0; i < flags.length; i++) bytes[i >> 3] |= flags[i] << (i & 7);
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}

/** What the server says is wrong, in its own words where it has any. */
async function sentence(answer: Response): Promise<string> {
  try {
    const { detail } = (await answer.json()) as { detail?: unknown };
    if (typeof detail === "string") return detail;
  } catch {
    // not JSON: the status is all there is to say
  }
  return `The server refused the request (status ${answer.status}).`;
}
