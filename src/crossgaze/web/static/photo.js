// A photograph, opened: words and regions, best sentences, questions.

import { $, bytes, make, plain, roving, tint } from "./dom.js";
import { get, post, thumbnail } from "./api.js";
import { Stage, tone } from "./stage.js";
import { paint } from "./veil.js";

// Words that say little by where they look; they are outlined only when pointed at. Those of
// crossgaze/explain/explanation.py.
const SMALL = new Set(("a an the of in on at by to and or with is are be for from it its his her " +
  "their as this that there who while front behind next near over under between into top side")
  .split(" "));
const SHOWN = 3;
const NOBODY = "no region answered this word";
const pointing = () => matchMedia("(hover: none)").matches
  ? "Tap a word, or the photograph." : "Point at a word, or at the photograph.";

export class PhotoView {
  constructor({ onClose, onStep, onTrouble, linkLike }) {
    this.dialog = $("photo");
    this.linkLike = linkLike;
    this.onTrouble = onTrouble;
    this.words = [];
    this.pinned = null;
    this.asked = {}; // kind -> aborts the request of this kind
    this.stage = new Stage({ onRegion: (region, how) => this.#region(region, how) });
    this.settleChips = roving($("chips"));
    this.settleRegions = roving($("region-list"));
    $("photo-close").onclick = () => this.dialog.close();
    $("photo-back").onclick = () => onStep(-1);
    $("photo-next").onclick = () => onStep(1);
    this.dialog.addEventListener("close", onClose);
    this.dialog.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step && plain(event) && !event.target.closest("input")) onStep(step);
    });
    $("look").onsubmit = (event) => {
      event.preventDefault();
      this.#look($("look-words").value.trim());
    };
    $("ask").onsubmit = (event) => {
      event.preventDefault();
      this.#ask($("question").value.trim());
    };
  }

  /** Open a photograph; neighbours says whether there is one before and one behind. */
  async open(id, { sentence, neighbours, card, asks }) {
    this.#giveUp();
    const signal = this.#instead("photo");
    this.id = id;
    this.pinned = null;
    this.words = [];
    $("chips").replaceChildren();
    $("regions").hidden = true;
    $("regions").open = false;
    for (const part of ["look-said", "ask-said", "photo-facts", "photo-path"]) $(part).textContent = "";
    for (const part of ["best-list", "answers", "steps"]) $(part).replaceChildren();
    $("best").hidden = true;
    $("look-words").value = sentence;
    this.setNeighbours(neighbours);
    $("photo-file").href = `/images/${id}/file`;
    $("photo-like").href = this.linkLike(id);
    this.#offer(Boolean(card), asks); // nothing of a photograph that may not be there
    if (card) this.#show(card);
    else this.#blank(id); // not the one before
    if (!this.dialog.open) this.dialog.showModal();
    try {
      const photo = await get(`/images/${id}`, signal);
      if (!card) this.#show(photo);
      this.#offer(true, asks);
      this.#facts(photo);
      if (sentence && !this.asked.look) await this.#look(sentence); // unless somebody looks already
      this.#sentences(await get(`/images/${id}/sentences`, signal));
    } catch (error) {
      if (error.status === 404) this.#offer(false);
      this.#wrong(error, $("look-said"));
    }
  }

  #offer(there, asks = false) {
    $("look").hidden = $("file-of").hidden = !there;
    $("asking").hidden = !there || !asks;
  }

  setNeighbours(neighbours) {
    [$("photo-back").disabled, $("photo-next").disabled] = neighbours.map((there) => !there);
  }

  /** Return the signal of a request; the one of its kind before it is given up. */
  #instead(kind) {
    this.asked[kind]?.abort();
    this.asked[kind] = new AbortController();
    return this.asked[kind].signal;
  }

  #giveUp() {
    for (const one of Object.values(this.asked)) one.abort();
    this.asked = {};
  }

  close() {
    this.#giveUp();
    this.id = null;
    if (this.dialog.open) this.dialog.close();
  }

  #wrong(error, place) {
    if (error.name === "AbortError") return;
    if (error.status === 401) this.onTrouble(error);
    else place.textContent = error.message;
  }

  #show(photo) {
    $("photo-name").textContent = photo.name;
    this.photo = photo;
    this.stage.show(photo);
  }

  #blank(id) {
    $("photo-name").textContent = "";
    this.photo = { id, version: "" };
    this.stage.blank();
  }

  #facts(photo) {
    const day = new Date(photo.taken);
    const facts = [`${photo.width} × ${photo.height}`, bytes(photo.bytes),
      day.toLocaleDateString("en-GB", { dateStyle: "long", timeZone: "UTC" }), ...photo.tags];
    $("photo-facts").textContent = facts.join(" · ");
    $("photo-path").textContent = photo.path;
    if (!this.words.length) this.#regions(photo.regions);
  }

  #regions(regions) {
    this.stage.regions = regions;
    $("regions").hidden = !regions.length;
    $("regions").querySelector("summary").textContent = `${regions.length} regions`;
    $("region-list").replaceChildren(...regions.map((_, n) => {
      const chip = make("button", { type: "button" }, this.#named(n));
      this.#pointed(chip, () => this.#region(n, "hover"), () => this.#region(-1, "hover"));
      chip.onclick = () => this.#region(n, "tap");
      return chip;
    }));
    this.settleRegions();
  }

  /** Return what a region is called; names that are not sure are empty. */
  #named(n) {
    const { attribute, noun, box: [x1, y1, x2, y2] } = this.stage.regions[n];
    if ((x2 - x1) * (y2 - y1) > 0.999) return "whole image";
    return noun ? `${attribute} ${noun}`.trim() : `region ${n + 1}`;
  }

  // Words and regions ---------------------------------------------------------------------------

  async #look(sentence) {
    const id = this.id, said = $("look-said");
    if (!sentence) return;
    $("look-words").value = sentence;
    said.textContent = "Looking …";
    const signal = this.#instead("look");
    try {
      const found = await get(`/explain?${new URLSearchParams({ id, q: sentence })}`, signal);
      this.#regions(found.regions);
      this.words = found.words;
      this.unknown = new Set(found.unknown);
      this.pinned = null;
      const told = found.score === null
        ? "This index has no re-ranker, so no word is compared with regions."
        : `Score ${found.score.toFixed(3)}. ${pointing()}` +
          (this.unknown.size ? ` Not known to the model: ${[...this.unknown].join(", ")}.` : "") +
          (found.whose ? ` What lights up is the attention of ${found.whose}; the score is of all.` : "");
      said.textContent = told;
      this.#chips();
      this.#rest();
    } catch (error) {
      this.#wrong(error, said);
    }
  }

  #chips() {
    // At rest, the words that looked most decidedly somewhere are outlined, each region once.
    const order = this.words.map((_, n) => n)
      .filter((n) => !SMALL.has(this.words[n].word) && !this.unknown.has(this.words[n].word))
      .filter((n) => this.words[n].strongest !== null)
      .sort((a, b) => Math.max(...this.words[b].weights) - Math.max(...this.words[a].weights));
    const taken = new Set();
    this.shown = order.filter((n) => {
      const region = this.words[n].strongest;
      return taken.size < SHOWN && !taken.has(region) && taken.add(region);
    });
    $("chips").replaceChildren(...this.words.map((word, n) => {
      const chip = make("button", { type: "button", "aria-pressed": "false" });
      const place = this.shown.indexOf(n);
      if (place >= 0) {
        chip.style.setProperty("--tone", tone(place)); // of its dot, and of all of it when it is lit
        chip.append(make("i"));
      }
      chip.append(word.word);
      chip.title = this.#answer(word);
      this.#pointed(chip, () => this.#word(n), () => this.#rest());
      chip.onclick = () => {
        this.pinned = this.pinned?.word === n ? null : { word: n };
        this.#rest();
      };
      return chip;
    }));
    this.settleChips();
  }

  /** Return in words which region answered a word. */
  #answer({ word, strongest }) {
    if (this.unknown.has(word)) return "The model does not know this word";
    if (strongest === null) return NOBODY[0].toUpperCase() + NOBODY.slice(1);
    return `Looked most at: ${this.#named(strongest)}`;
  }

  #pointed(chip, enter, leave) {
    chip.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && enter());
    chip.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && leave());
    chip.addEventListener("focus", () => chip.matches(":focus-visible") && enter());
    chip.addEventListener("blur", leave);
  }

  /** Show what is pinned, or the outlines at rest. */
  #rest() {
    const chips = [...$("chips").children];
    chips.forEach((chip, n) => {
      chip.setAttribute("aria-pressed", String(this.pinned?.word === n));
      chip.classList.remove("on");
      tint(chip, 0);
    });
    for (const chip of $("region-list").children) chip.classList.remove("on");
    if (this.pinned?.step) this.pinned.step();
    else if (this.pinned?.word !== undefined) this.#word(this.pinned.word);
    else if (this.pinned?.region !== undefined) this.#light(this.pinned.region);
    else {
      this.stage.plain();
      this.stage.outline((this.words.length ? this.shown : []).map((n, place) => ({
        box: this.stage.regions[this.words[n].strongest].box,
        label: this.words[n].word, tone: tone(place),
      })));
    }
  }

  #word(n) {
    const { word, weights, strongest } = this.words[n];
    const boxes = this.stage.regions.map((region) => region.box);
    const place = this.shown.indexOf(n); // a frame has its word's colour, where it has one
    if (strongest === null) this.stage.light(boxes, weights, [], `“${word}”: ${NOBODY}`);
    else this.stage.light(boxes, weights,
      [{ region: strongest, label: word, tone: place >= 0 ? tone(place) : "" }]);
    [...$("chips").children].forEach((chip, other) => {
      chip.classList.toggle("on", other === n);
      tint(chip, 0);
    });
  }

  #region(region, how) {
    if (how === "tap") {
      this.pinned = region < 0 || this.pinned?.region === region ? null : { region };
      this.#rest();
    } else if (region < 0) this.#rest();
    else this.#light(region);
  }

  /** A region is outlined, and words are tinted by how much of their look went there. */
  #light(region) {
    const { box } = this.stage.regions[region];
    this.stage.light([box], [1], [{ region: 0, label: this.#named(region) }]);
    [...$("chips").children].forEach((chip, n) => {
      const { weights } = this.words[n];
      chip.classList.remove("on");
      tint(chip, weights[region] / Math.max(...weights, 1e-12));
    });
    [...$("region-list").children].forEach((chip, n) => chip.classList.toggle("on", n === region));
  }

  // Sentences and questions ----------------------------------------------------------------------

  #sentences(sentences) {
    $("best").hidden = !sentences.length;
    $("best-list").replaceChildren(...sentences.map(({ text, score }) => {
      const button = make("button", { type: "button", className: "said", title: "Look for its words" },
        make("span", {}, text), make("small", {}, score.toFixed(3)));
      button.onclick = () => this.#look(text);
      return make("li", {}, button);
    }));
  }

  async #ask(question) {
    const id = this.id, said = $("ask-said");
    if (!question) return;
    said.textContent = "Looking and thinking …";
    if (this.pinned?.step) { // of the last question
      this.pinned = null;
      this.#rest();
    }
    $("answers").replaceChildren();
    $("steps").replaceChildren();
    const signal = this.#instead("ask");
    try {
      const reply = await post("/ask", { id, question }, signal);
      said.textContent = reply.unknown.length
        ? `Words that the model does not know: ${reply.unknown.join(", ")}.` : "";
      $("answers").replaceChildren(...reply.answers.map(({ answer, probability }) => {
        const bar = make("i");
        bar.style.width = `${100 * probability}%`;
        return make("li", {}, make("b", {}, answer.replaceAll("_", " ")), make("span", { className: "bar" }, bar),
          make("small", {}, `${(100 * probability).toFixed(1)} %`));
      }));
      $("steps").replaceChildren(...reply.steps.map((step, n) => this.#step(reply, step, n)));
    } catch (error) {
      this.#wrong(error, said);
    }
  }

  #step(reply, step, n) {
    const canvas = make("canvas", { className: "veil on", "aria-hidden": "true" });
    const mini = make("span", { className: "mini" },
      make("img", { src: thumbnail(this.photo, 480), alt: "" }), canvas);
    mini.style.setProperty("--ratio", this.stage.ratio.toFixed(4));
    if (step.regions.length) paint(canvas, reply.boxes, step.regions, this.stage.ratio);
    const most = Math.max(...step.words, 1e-12);
    const read = reply.words.map((word, place) => {
      const item = make("span", {}, word);
      if (step.words.length) tint(item, step.words[place] / most);
      return item;
    });
    const button = make("button", { type: "button", className: "step",
      "aria-label": `What step ${n + 1} looked at, on the photograph` },
      make("em", {}, `Step ${n + 1}`), mini, make("span", { className: "read" }, ...read));
    const light = () => {
      if (!step.regions.length) return;
      const strongest = step.regions.indexOf(Math.max(...step.regions));
      this.stage.light(reply.boxes, step.regions, [{ region: strongest, label: `step ${n + 1}` }]);
    };
    this.#pointed(button, light, () => this.#rest());
    button.onclick = () => {
      this.pinned = this.pinned?.number === n ? null : { step: light, number: n };
      this.#rest();
    };
    return button;
  }
}
