// The grid of photographs. Sizes are known before pictures come, so nothing ever jumps; when the
// order changes, tiles slide to their new places.

import { make, plain, still } from "./dom.js";
import { thumbnail } from "./api.js";

const NARROWEST = 0.5, WIDEST = 3, SLIDE = 280;

export class Grid {
  constructor(list, { link, onOpen }) {
    this.list = list;
    this.link = link;
    this.tiles = new Map(); // id -> li
    this.photos = [];
    list.addEventListener("click", (event) => {
      const tile = event.target.closest(".tile");
      if (!tile || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
      event.preventDefault();
      onOpen(Number(tile.dataset.id));
    });
    list.addEventListener("keydown", (event) => this.#arrows(event));
  }

  clear() {
    this.tiles.clear();
    this.photos = [];
    this.list.replaceChildren();
    delete this.list.dataset.stage;
  }

  /** Show that what is there is no answer to what was asked last, until something else is shown. */
  dim() {
    this.list.dataset.stage = "old";
  }

  /** Show photographs from a place on; what was there before the place stays. */
  show(photos, first = 0, stage = "ranked") {
    const focused = document.activeElement?.closest?.(".tile")?.dataset.id;
    const places = this.#places();
    const before = this.photos.slice(0, first);
    const known = new Set(before.map((photo) => photo.id));
    this.photos = [...before, ...photos.filter(({ id }) => !known.has(id) && known.add(id))];
    const kept = new Set(this.photos.map((photo) => photo.id));
    for (const [id, item] of this.tiles) {
      if (!kept.has(id)) {
        item.remove();
        this.tiles.delete(id);
      }
    }
    this.list.dataset.stage = stage;
    let next = this.list.children[before.length] ?? null;
    for (const photo of this.photos.slice(before.length)) {
      let item = this.tiles.get(photo.id);
      if (!item) {
        item = this.#make(photo);
        this.tiles.set(photo.id, item);
      }
      this.#say(item, photo);
      if (item === next) next = next.nextElementSibling;
      else this.list.insertBefore(item, next);
    }
    this.#slide(places);
    if (focused) this.tiles.get(Number(focused))?.firstChild.focus({ preventScroll: true });
  }

  focus(id) {
    this.tiles.get(id)?.firstChild.focus();
  }

  #make(photo) {
    const ratio = Math.min(Math.max(photo.width / photo.height || 1, NARROWEST), WIDEST);
    const wide = (side) => Math.round(Math.min(side, side * (photo.width / photo.height || 1)));
    const image = make("img", {
      width: photo.width || 3, height: photo.height || 2, decoding: "async",
      loading: this.tiles.size < 12 ? "eager" : "lazy",
      alt: photo.shows.join(", ") || photo.name,
      sizes: `${Math.round(ratio * 236)}px`,
      srcset: [480, 960].map((side) => `${thumbnail(photo, side)} ${wide(side)}w`).join(", "),
      src: thumbnail(photo, 480),
    });
    const tile = make("a", { className: "tile", href: this.link(photo.id), title: photo.name },
      image,
      make("span", { className: "facts" },
        make("span", { className: "name" }, photo.name), make("span", { className: "score" })));
    image.addEventListener("error", () => tile.classList.add("broken"));
    tile.dataset.id = photo.id;
    const item = make("li", { className: "new" }, tile);
    item.style.setProperty("--ratio", ratio.toFixed(4));
    return item;
  }

  #say(item, photo) {
    const tile = item.firstChild, scored = photo.score !== undefined;
    tile.classList.toggle("scored", scored);
    tile.href = this.link(photo.id);
    tile.querySelector(".score").textContent = scored ? photo.score.toFixed(3) : "";
  }

  #places() {
    if (still() || this.tiles.size > 120) return null;
    return new Map([...this.tiles].map(([id, item]) => [id, item.getBoundingClientRect()]));
  }

  #slide(places) {
    if (!places) return;
    for (const [id, was] of places) {
      const item = this.tiles.get(id);
      if (!item) continue;
      const is = item.getBoundingClientRect();
      const x = was.left - is.left, y = was.top - is.top;
      if ((x || y) && Math.min(was.top, is.top) < innerHeight) {
        item.animate([{ transform: `translate(${x}px, ${y}px)` }, { transform: "none" }],
          { duration: SLIDE, easing: "cubic-bezier(.2, .7, .2, 1)" });
      }
    }
  }

  #arrows(event) {
    const tile = event.target.closest(".tile");
    if (!tile || !plain(event)) return;
    const all = [...this.tiles.values()].length ? [...this.list.children] : [];
    const here = all.indexOf(tile.parentNode);
    let to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      to = this.#nearest(all, here, event.key === "ArrowDown" ? 1 : -1);
    }
    if (to === undefined || !all[to]) return;
    event.preventDefault();
    all[to].firstChild.focus();
  }

  /** Return the tile of the next row whose middle is nearest. */
  #nearest(all, here, step) {
    const box = all[here].getBoundingClientRect(), middle = box.left + box.width / 2;
    let best, row;
    for (let n = here + step; all[n]; n += step) {
      const other = all[n].getBoundingClientRect();
      if (Math.abs(other.top - box.top) < 4) continue;
      row ??= other.top;
      if (Math.abs(other.top - row) > 4) break;
      const off = Math.abs(other.left + other.width / 2 - middle);
      if (!best || off < best.off) best = { n, off };
    }
    return best?.n;
  }
}
