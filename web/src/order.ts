/** Rows in the order of numbers, quick enough for hundreds of thousands of them between two frames: radix sort. */

const DIGIT = 11; // bits that a pass sorts by
const BUCKETS = 1 << DIGIT;

/** The places 0 … n - 1 of keys, least first; equal ones stay in order and NaN comes last. */
export function sorted(keys: ArrayLike<number>): Uint32Array {
  const n = keys.length;
  // As whole numbers, positive doubles are in order and negative ones in reverse, below them once the sign is turned.
  const numbers = new Float64Array(n);
  for (let i = 0; i < n; i++) numbers[i] = keys[i] + 0; // no -0, which is another word than 0
  const words = new Uint32Array(numbers.buffer);
  let order = new Uint32Array(n);
  let next = new Uint32Array(n);
  for (let i = 0; i < n; i++) {
    const high = words[2 * i + 1];
    if (Number.isNaN(numbers[i])) {
      words[2 * i] = words[2 * i + 1] = 0xffffffff;
    } else if (high >>> 31) {
      words[2 * i] = ~words[2 * i];
      words[2 * i + 1] = ~high;
    } else {
      words[2 * i + 1] = high | 0x80000000;
    }
    order[i] = i;
  }
  const first = new Uint32Array(BUCKETS + 1);
  for (let pass = 0; pass < 6; pass++) {
    const word = pass < 3 ? 0 : 1;
    const shift = (pass % 3) * DIGIT;
    first.fill(0);
    for (let i = 0; i < n; i++) first[((words[2 * i + word] >>> shift) & (BUCKETS - 1)) + 1]++;
    if (first.includes(n)) continue; // they all share this digit
    for (let bucket = 0; bucket < BUCKETS; bucket++) first[bucket + 1] += first[bucket];
    for (let i = 0; i < n; i++) {
      const at = order[i];
      next[first[(words[2 * at + word] >>> shift) & (BUCKETS - 1)]++] = at;
    }
    const before = order;
    order = next;
    next = before;
  }
  return order;
}
