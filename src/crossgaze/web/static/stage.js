// The photograph of the opened view, with a veil and outlines over it.

import { $, make } from "./dom.js";
import { thumbnail } from "./api.js";
import { arrange } from "./labels.js";
import { paint } from "./veil.js";

const TONES = ["var(--one)", "var(--two)", "var(--three)"];
export const tone = (n) => TONES[n % TONES.length];

export class Stage {
  constructor({ onRegion }) {
    this.frame = $("frame");
    this.image = $("photo-img");
    this.veil = $("veil");
    this.boxes = $("boxes");
    this.regions = [];
    const point = (event, how) => onRegion(this.#at(event), how);
    this.frame.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse") point(event, "hover");
    });
    this.frame.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") onRegion(-1, "hover");
    });
    this.frame.addEventListener("click", (event) => point(event, "tap"));
    new ResizeObserver(() => this.#arrange()).observe(this.frame); // as a phone that is turned
  }

  show(photo) {
    this.ratio = photo.width / photo.height || 1;
    this.frame.style.setProperty("--ratio", this.ratio.toFixed(4));
    this.image.alt = photo.shows.join(", ") || photo.name;
    this.image.src = thumbnail(photo, 480); // the grid has it already
    const fine = new Image();
    fine.onload = () => {
      if (this.photo === photo) this.image.src = fine.src;
    };
    this.photo = photo;
    fine.src = thumbnail(photo, 1600);
    this.regions = [];
    this.plain();
  }

  /** No photograph, until one is known. */
  blank() {
    this.photo = null;
    this.image.removeAttribute("src");
    this.image.alt = "";
    this.regions = [];
    this.plain();
  }

  /** Nothing lit. */
  plain() {
    this.veil.classList.remove("on");
    this.boxes.replaceChildren();
  }

  /** Light regions by weight; outline some: [{ region, label, tone }]; write told over them. */
  light(boxes, weights, outlined = [], told = "") {
    paint(this.veil, boxes, weights, this.ratio);
    this.veil.classList.add("on");
    this.outline(outlined.map((one) => ({ ...one, box: boxes[one.region] })));
    if (told) this.boxes.append(make("p", {}, told));
  }

  outline(all) {
    this.boxes.replaceChildren(...all.map(({ box, label, tone: colour }) => {
      const item = make("div", { className: "box" }, label ? make("b", {}, label) : "");
      const [x1, y1, x2, y2] = box.map((share) => 100 * share);
      Object.assign(item.style,
        { left: `${x1}%`, top: `${y1}%`, width: `${x2 - x1}%`, height: `${y2 - y1}%` });
      if (colour) item.style.setProperty("--tone", colour);
      return item;
    }));
    this.#arrange();
  }

  #arrange() {
    const buttons = $("photo").querySelectorAll(".round, .close");
    arrange(this.boxes.querySelectorAll(".box"), this.frame.parentNode, buttons);
  }

  /** Return the smallest region under the pointer, -1 for none. */
  #at(event) {
    const frame = this.frame.getBoundingClientRect();
    const x = (event.clientX - frame.left) / frame.width;
    const y = (event.clientY - frame.top) / frame.height;
    let best = -1, least = Infinity;
    this.regions.forEach(({ box: [x1, y1, x2, y2] }, n) => {
      const area = (x2 - x1) * (y2 - y1);
      if (x >= x1 && x <= x2 && y >= y1 && y <= y2 && area < least) [best, least] = [n, area];
    });
    return best;
  }
}
