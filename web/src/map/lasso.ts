/** The rows of all points inside a closed line, without those that `skip` marks. */
export function inside(points: Float32Array, line: [number, number][], skip: Uint8Array): number[] {
  const xs = line.map(([x]) => x);
  const ys = line.map(([, y]) => y);
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const found: number[] = [];
  for (let row = 0; row < points.length / 2; row++) {
    const [x, y] = [points[2 * row], points[2 * row + 1]];
    if (skip[row] !== 0 || x < left || x > right || y < low || y > high) continue;
    let odd = false; // a ray to the right crosses the line an odd number of times
    for (let i = 0, j = line.length - 1; i < line.length; j = i++) {
      if (ys[i] > y !== ys[j] > y && x < ((xs[j] - xs[i]) * (y - ys[i])) / (ys[j] - ys[i]) + xs[i]) odd = !odd;
    }
    if (odd) found.push(row);
  }
  return found;
}
