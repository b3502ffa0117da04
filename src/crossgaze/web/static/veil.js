// Where something looked: the photograph goes dark where it did not.

const WIDTH = 144, DARK = 0.72;

/** Paint a veil over a photograph: clear where regions have much weight, soft at their edges.
 *
 * boxes: [x1, y1, x2, y2] as shares; weights: one a box; ratio: width over height.
 */
export function paint(canvas, boxes, weights, ratio) {
  const wide = WIDTH, high = Math.max(8, Math.round(WIDTH / ratio));
  const light = new Float32Array(wide * high);
  const most = Math.max(...weights, 1e-12);
  boxes.forEach((box, n) => {
    const share = weights[n] / most;
    if (share < 0.02) return;
    const x1 = Math.floor(box[0] * wide), x2 = Math.max(Math.ceil(box[2] * wide), x1 + 1);
    const y1 = Math.floor(box[1] * high), y2 = Math.max(Math.ceil(box[3] * high), y1 + 1);
    for (let y = y1; y < Math.min(y2, high); y++) {
      for (let x = x1; x < Math.min(x2, wide); x++) {
        // The strongest region decides, so that many weak ones do not outshine it.
        light[y * wide + x] = Math.max(light[y * wide + x], share);
      }
    }
  });
  soften(light, wide, high, 2);
  soften(light, wide, high, 2);
  canvas.width = wide;
  canvas.height = high;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(wide, high);
  light.forEach((value, n) => {
    pixels.data[4 * n + 3] = Math.round(255 * DARK * (1 - Math.min(value, 1)));
  });
  context.putImageData(pixels, 0, 0);
}

/** Average over 2r + 1 pixels, along rows and then along columns. */
function soften(light, wide, high, r) {
  const pass = (length, lines, at) => {
    const line = new Float32Array(length);
    for (let l = 0; l < lines; l++) {
      for (let i = 0; i < length; i++) line[i] = light[at(i, l)];
      for (let i = 0; i < length; i++) {
        let sum = 0;
        for (let k = -r; k <= r; k++) sum += line[Math.min(Math.max(i + k, 0), length - 1)];
        light[at(i, l)] = sum / (2 * r + 1);
      }
    }
  };
  pass(wide, high, (x, y) => y * wide + x);
  pass(high, wide, (y, x) => y * wide + x);
}
