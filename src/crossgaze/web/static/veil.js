// Where something looked: the photograph goes dark where it did not.

const WIDTH = 144, DARK = 0.72;
const EDGE = 0.1, BORDER = 1e-3, SMALLEST = 1e-12; // as in crossgaze/explain/maps.py

/** Paint a veil over a photograph: clear where regions have much weight, soft at their edges.
 *
 * boxes: [x1, y1, x2, y2] as shares; weights: one a box; ratio: width over height.
 */
export function paint(canvas, boxes, weights, ratio) {
  const wide = WIDTH, high = Math.max(8, Math.round(WIDTH / ratio));
  const light = softMap(boxes, weights, wide, high);
  canvas.width = wide;
  canvas.height = high;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(wide, high);
  light.forEach((value, n) => {
    pixels.data[4 * n + 3] = Math.round(255 * DARK * (1 - value));
  });
  context.putImageData(pixels, 0, 0);
}

/** Return how much each pixel was looked at, row by row, from 0 to 1 where it was most.
 *
 * The map of crossgaze/explain/maps.py, which has the formula, by its rule "strongest".
 */
export function softMap(boxes, weights, wide, high) {
  const top = Math.max(...weights, 0);
  const heat = new Float64Array(wide * high);
  if (top <= SMALLEST) return heat;
  const room = new Float64Array(wide * high).fill(1); // what no stronger region has taken
  const order = boxes.map((_, n) => n).sort((a, b) => weights[b] - weights[a]);
  for (const n of order) {
    const [x1, y1, x2, y2] = boxes[n], weight = weights[n] / top;
    const across = profile(x1, x2, wide), down = profile(y1, y2, high);
    for (let y = 0; y < high; y++) {
      if (down[y] === 0) continue;
      for (let x = 0; x < wide; x++) {
        const at = y * wide + x, part = Math.min(across[x] * down[y], room[at]);
        heat[at] += weight * part;
        room[at] -= part;
      }
    }
  }
  const most = heat.reduce((a, b) => Math.max(a, b), 0);
  return most > 0 ? heat.map((value) => value / most) : heat;
}

/** Return how much of an interval reaches each of the pixels of a side. */
function profile(low, high, count) {
  // An interval thinner than a pixel would fall between the centres and be lost.
  const thin = 1 / count;
  const middle = Math.min(Math.max((low + high) / 2, thin / 2), 1 - thin / 2);
  const from = Math.min(low, middle - thin / 2), to = Math.max(high, middle + thin / 2);
  const fade = Math.max(EDGE * (to - from), 1e-9);
  return Float64Array.from({length: count}, (_, n) => {
    const centre = (n + 0.5) / count;
    const rise = from <= BORDER ? 1 : smooth(0.5 + (centre - from) / fade);
    const fall = to >= 1 - BORDER ? 1 : smooth(0.5 + (to - centre) / fade);
    return rise * fall;
  });
}

function smooth(share) {
  const t = Math.min(Math.max(share, 0), 1);
  return t * t * (3 - 2 * t);
}
