// Where the labels of outlined regions stand: whole inside the stage, and beside what is there.

const BORDER = 2; // of a box, in style.css
const FAR = 40; // pixels that a label may be from its box, to be beside a button

/** Put each box's label above it, else below, else inside, from its left edge or to its right one,
 *  else beside what is in the way: at the first place where it covers no button and no label before
 *  it, or where it covers least. */
export function arrange(boxes, stage, buttons) {
  const room = stage.getBoundingClientRect();
  const taken = [...buttons].map((one) => one.getBoundingClientRect());
  for (const box of boxes) {
    const label = box.querySelector("b");
    if (!label) continue;
    const around = box.getBoundingClientRect();
    const { width, height } = label.getBoundingClientRect();
    const tops = within(room.top, room.bottom - height,
      [around.top - height, around.bottom, around.top, around.bottom - height]);
    const lefts = within(room.left, room.right - width, [around.left, around.right - width]);
    const beside = within(room.left, room.right - width,
      taken.flatMap((one) => [one.left - width, one.right])
        .filter((left) => left + width > around.left - FAR && left < around.right + FAR));
    let best;
    for (const row of [lefts, beside]) for (const top of tops) for (const left of row) {
      const place = { left, top, right: left + width, bottom: top + height };
      const covered = taken.reduce((sum, one) => sum + common(one, place), 0);
      if (!best || covered < best.covered) best = { place, covered };
    }
    taken.push(best.place);
    label.style.left = `${best.place.left - around.left - BORDER}px`;
    label.style.top = `${best.place.top - around.top - BORDER}px`;
  }
}

/** Return which of some places lie between two; the first, moved there, if none does. */
function within(least, most, places) {
  const fit = places.filter((place) => place >= least && place <= most);
  return fit.length ? fit : places.slice(0, 1).map((place) => Math.max(least, Math.min(place, most)));
}

/** Return the area that two rectangles share. */
function common(one, other) {
  const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
  const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
  return Math.max(0, wide) * Math.max(0, high);
}
