"use strict";
// One object a model: its words, regions and maps. Texts go in by textContent only.
const models = JSON.parse(document.getElementById("data").textContent);
const percent = (share) => (share >= 0.0995 ? Math.round(100 * share) : (100 * share).toFixed(1)) + "\u00a0%";
const EDGE = 3; // pixels of a frame's border, and between it and its label
const shows = [];

class Show {
  constructor(data, section) {
    Object.assign(this, { data, section, view: data.view, word: null, region: null, pinned: null });
    this.stage = section.querySelector(".stage");
    this.veil = section.querySelector(".veil");
    this.frame = section.querySelector(".frame");
    this.label = this.frame.querySelector("b");
    this.told = section.querySelector(".told");
    this.chips = new Map();
    for (const chip of section.querySelectorAll("[data-word]")) this.chips.set(+chip.dataset.word, chip);
    this.tabs = [...section.querySelectorAll(".views button")];
    this.word = data.start;
    this.listen();
    this.draw();
  }

  get map() { return this.data.views[this.view]; }

  listen() {
    for (const [word, chip] of this.chips) {
      if (chip.tagName !== "BUTTON") continue;
      chip.addEventListener("pointerenter", (event) => {
        if (event.pointerType === "mouse" && this.pinned === null) tellAll(this, word);
      });
      chip.addEventListener("focus", () => tellAll(this, word));
      chip.addEventListener("click", () => {
        // By what was held, not by what is lit: the focus has come before the click.
        this.pinned = this.pinned === word ? null : word;
        tellAll(this, word);
      });
    }
    this.section.querySelector(".words").addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const all = [...this.chips.values()].filter((chip) => chip.tagName === "BUTTON");
      const here = all.indexOf(document.activeElement);
      if (!step || here < 0) return;
      event.preventDefault();
      all[(here + step + all.length) % all.length].focus();
    });
    this.tabs.forEach((tab, number) => tab.addEventListener("click", () => {
      this.view = number;
      this.draw();
    }));
    this.stage.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse") this.look(this.under(event));
    });
    this.stage.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") this.look(null);
    });
    this.stage.addEventListener("click", (event) => this.look(this.under(event)));
    this.stage.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const count = this.data.boxes.length;
      if (!step || !count) return;
      event.preventDefault();
      this.look(this.region === null ? (step > 0 ? 0 : count - 1) : (this.region + step + count) % count);
    });
    this.stage.addEventListener("blur", () => this.look(null));
    new ResizeObserver(() => this.draw()).observe(this.stage); // as a phone that is turned
  }

  // The smallest region under the pointer: a large one can be reached where no small one lies on it.
  under(event) {
    const place = this.stage.getBoundingClientRect();
    const x = 100 * (event.clientX - place.left) / place.width;
    const y = 100 * (event.clientY - place.top) / place.height;
    let best = null, least = Infinity;
    this.data.boxes.forEach(([left, top, width, height], region) => {
      const inside = x >= left && x <= left + width && y >= top && y <= top + height;
      if (inside && width * height < least) { best = region; least = width * height; }
    });
    return best;
  }

  look(region) {
    if (region === this.region) return;
    this.region = region;
    this.draw();
  }

  light(word) {
    if (word === this.word && this.region === null) return;
    this.region = null;
    this.word = word;
    this.draw();
  }

  draw() {
    const map = this.map;
    this.tabs.forEach((tab, number) => tab.setAttribute("aria-pressed", String(number === this.view)));
    let shares = map && map.words ? map.words : null;
    const row = map && map.weights && this.word !== null ? map.weights[this.word] : null;
    let framed = this.region, label = framed === null ? "" : this.data.labels[framed];
    if (this.region !== null) {
      this.veil.hidden = true;
      if (map && map.weights) shares = Object.fromEntries(Object.entries(map.weights).map(([w, r]) => [w, r[this.region]]));
    } else if (row) {
      this.veil.hidden = false;
      this.veil.src = map.veils[this.word];
      framed = strongest(row);
      label = framed === null ? "" : this.data.labels[framed];
    } else if (map && map.veil) {
      this.veil.hidden = false;
      this.veil.src = map.veil;
    } else this.veil.hidden = true;
    this.box(framed, label);
    this.shade(shares);
    this.told.textContent = this.tell(map, row);
  }

  box(region, label) {
    this.frame.hidden = region === null;
    if (region === null) return;
    const [left, top, width, height] = this.data.boxes[region];
    Object.assign(this.frame.style, { left: left + "%", top: top + "%", width: width + "%", height: height + "%" });
    this.label.textContent = label;
    // The label stands above its frame; below at the top edge, inside where there is no room at all.
    // By the stage and not by the frame, which may still be on its way.
    const stage = this.stage.getBoundingClientRect(), own = this.label.getBoundingClientRect();
    const high = (top / 100) * stage.height < own.height + EDGE;
    const low = ((100 - top - height) / 100) * stage.height < own.height + EDGE;
    this.frame.classList.toggle("high", high);
    this.frame.classList.toggle("full", high && low);
    const edge = (left / 100) * stage.width;
    this.label.style.left = Math.max(0, Math.min(edge, stage.width - own.width)) - edge - EDGE + "px";
  }

  shade(shares) {
    const most = shares ? Math.max(...Object.values(shares), 1e-9) : 1;
    for (const [word, chip] of this.chips) {
      const share = shares && shares[word] !== undefined ? shares[word] / most : 0;
      chip.style.setProperty("--share", share.toFixed(3));
      chip.classList.toggle("strong", share > 0.55);
      const now = this.region === null && word === this.word;
      chip.classList.toggle("now", now);
      if (chip.tagName === "BUTTON") chip.setAttribute("aria-pressed", String(now));
    }
  }

  tell(map, row) {
    const { words, labels, rest } = this.data;
    if (this.region !== null) return this.tellRegion(map);
    if (row) {
      const word = `“${words[this.word]}” `;
      const found = best(row).map((region) => `${labels[region]} (${percent(row[region])})`);
      if (!found.length) return word + "has no region in this map.";
      return word + (map.back ? "is looked at by " : "looks at ") + found.join(", ") + ".";
    }
    if (this.word !== null && map && map.words) {
      const steps = this.data.views.map((view) => `${percent(view.words[this.word])} of ${view.name}`);
      return `“${words[this.word]}” has ${steps.join(", ")}.`;
    }
    return rest;
  }

  tellRegion(map) {
    const { words, labels, boxes } = this.data;
    const name = `${labels[this.region]} (${this.region + 1} of ${boxes.length})`;
    if (map && map.weights) {
      const column = Object.fromEntries(Object.entries(map.weights).map(([w, r]) => [w, r[this.region]]));
      const found = best(column).map((word) => `“${words[word]}” (${percent(column[word])})`);
      if (!found.length) return `${name}: no word in this map.`;
      return `${name} ${map.back ? "looks at" : "is looked at by"} ${found.join(", ")}.`;
    }
    if (map && map.regions && map.words) return `${name} has ${percent(map.regions[this.region])} of ${map.name}.`;
    if (map && map.regions) {
      const rank = map.regions.filter((weight) => weight > map.regions[this.region]).length + 1;
      return `${name} is number ${rank} by agreement with the whole image.`;
    }
    return `${name}.`;
  }
}

function best(weights) {
  const keys = Object.keys(weights).filter((key) => weights[key] > 0);
  return keys.sort((one, other) => weights[other] - weights[one]).slice(0, 3).map(Number);
}

function strongest(weights) {
  const [first] = best(weights);
  return first === undefined ? null : first;
}

// A word lights in every model that has read the same word at the same place among its likes.
function tellAll(from, word) {
  from.light(word);
  const text = from.data.words[word];
  const place = from.data.words.slice(0, word).filter((other) => other === text).length;
  for (const show of shows) {
    if (show === from) continue;
    const alike = show.data.words.flatMap((other, number) => (other === text ? [number] : []));
    if (alike.length > place && show.chips.get(alike[place])?.tagName === "BUTTON") show.light(alike[place]);
  }
}

document.querySelectorAll(".model").forEach((section, number) => shows.push(new Show(models[number], section)));
// Models side by side begin with the same word.
if (shows.length && shows[0].data.start !== null) tellAll(shows[0], shows[0].data.start);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const show of shows) { show.pinned = null; show.region = null; show.word = null; show.draw(); }
});
