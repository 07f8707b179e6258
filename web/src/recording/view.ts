/** The stretch of a recording that is on screen, and its way between seconds and pixels. */

import type { Layout } from "./painter";
import type { RecordingAbout, Span } from "./source";

const LEAST = 8; // time steps on screen

export class View implements Span {
  start: number;
  end: number;

  constructor(private readonly about: RecordingAbout) {
    this.start = about.start;
    this.end = about.end;
  }

  get length(): number {
    return this.end - this.start;
  }

  /** Shows a stretch, or as much of it as the recording has. */
  show(start: number, end: number): void {
    const { about } = this;
    const least = Math.min(about.end - about.start, LEAST / (about.rate ?? 1));
    const length = Math.min(about.end - about.start, Math.max(least, end - start));
    const middle = (start + end) / 2;
    this.start = Math.min(about.end - length, Math.max(about.start, middle - length / 2));
    this.end = this.start + length;
  }

  /** Makes a moment's surroundings `factor` times as wide. */
  zoom(factor: number, around: number): void {
    const { about } = this;
    const least = LEAST / (about.rate ?? 1);
    const length = Math.min(about.end - about.start, Math.max(least, this.length * factor));
    const start = around - ((around - this.start) / this.length) * length;
    this.show(start, start + length);
  }

  pan(seconds: number): void {
    this.show(this.start + seconds, this.end + seconds);
  }

  /** Goes to a stretch where it is not on screen. */
  reveal({ start, end }: Span): void {
    if (start >= this.start && end <= this.end) return;
    const length = Math.max(this.length, 1.5 * (end - start));
    const middle = (start + end) / 2;
    this.show(middle - length / 2, middle + length / 2);
  }

  time(x: number, { left, right }: Layout): number {
    return this.start + ((x - left) / (right - left)) * this.length;
  }

  pixel(time: number, { left, right }: Layout): number {
    return left + ((time - this.start) / this.length) * (right - left);
  }
}
