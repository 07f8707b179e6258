/** A value that tells whoever listens when it changes. */
export class Signal<T> {
  private readonly listeners: ((value: T, before: T) => void)[] = [];

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set value(next: T) {
    if (next === this.current) return;
    const before = this.current;
    this.current = next;
    for (const listener of this.listeners) listener(next, before);
  }

  /** Calls `listener` after every change. */
  listen(listener: (value: T, before: T) => void): void {
    this.listeners.push(listener);
  }

  /** Calls `listener` now and after every change. */
  follow(listener: (value: T) => void): void {
    this.listeners.push(listener);
    listener(this.current);
  }
}
