/** Which part of the plane is seen: the map's units run from -1 to 1, y upwards; pixels run downwards. */
export class Camera {
  width = 1;
  /** Pixels on the left that something else covers. */
  lead = 0;
  height = 1;
  x = 0;
  y = 0;
  zoom = 1;

  /** Pixels per unit. */
  get scale(): number {
    return (Math.min(this.width - this.lead, this.height) / 2) * 0.93 * this.zoom;
  }

  /** The pixel in the middle of what is seen. */
  private get middle(): number {
    return (this.width + this.lead) / 2;
  }

  toScreen(x: number, y: number): [number, number] {
    return [this.middle + (x - this.x) * this.scale, this.height / 2 - (y - this.y) * this.scale];
  }

  toPlane(px: number, py: number): [number, number] {
    return [this.x + (px - this.middle) / this.scale, this.y - (py - this.height / 2) / this.scale];
  }

  pan(dx: number, dy: number): void {
    this.x = clamp(this.x - dx / this.scale, -1.2, 1.2);
    this.y = clamp(this.y + dy / this.scale, -1.2, 1.2);
  }

  /** Zooms so that what lies under a pixel stays there. */
  zoomAt(px: number, py: number, factor: number): void {
    const [x, y] = this.toPlane(px, py);
    this.zoom = clamp(this.zoom * factor, 0.5, 400);
    this.x = x - (px - this.middle) / this.scale;
    this.y = y + (py - this.height / 2) / this.scale;
  }

  reset(): void {
    this.x = this.y = 0;
    this.zoom = 1;
  }
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
