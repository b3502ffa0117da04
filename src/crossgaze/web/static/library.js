// What the index is, adding folders with progress, and the token.

import { $, count, duration, make } from "./dom.js";
import { follow, get, post } from "./api.js";

const PAUSE = 2000; // milliseconds before a progress that was refused is asked for again
const LOOK = 2500; // milliseconds between looks for photographs that have come

export class Library {
  constructor({ onBegin, onChange, onTrouble, onRecovered, onOver }) {
    this.onBegin = onBegin;
    this.onChange = onChange;
    this.onTrouble = onTrouble;
    this.onRecovered = onRecovered;
    this.onOver = onOver;
    this.state = null;
    this.seen = null; // photographs that there were when the page was last told of a change
    setInterval(() => this.#look(), LOOK);
    $("library-open").onclick = async () => {
      try {
        await this.load();
        $("library").showModal();
      } catch (error) {
        onTrouble(error, () => $("library-open").click());
      }
    };
    $("library-close").onclick = () => $("library").close();
    $("logout").onclick = () => this.#leave();
  }

  async #leave() {
    try {
      await post("/logout", {});
      location.assign("/");
    } catch (error) {
      $("library").close();
      error.message = `You are still logged in. ${error.message}`;
      this.onTrouble(error, () => this.#leave());
    }
  }

  /** Whether a folder is being added, as far as the page knows. */
  get adding() {
    return Boolean(this.stop);
  }

  /** Look for photographs: there are none, whatever there was. */
  wait() {
    this.seen = 0;
  }

  async load() {
    const known = JSON.stringify(this.state?.folders);
    this.state = await get("/index");
    const { photographs, sentences, embedder, reranker, answerer, folders, token, job } = this.state;
    const facts = { Photographs: photographs.toLocaleString("en"), Sentences: sentences.toLocaleString("en"),
      "Candidates by": embedder, "Exact order by": reranker ? `it and ${reranker}, their mean` : "it alone",
      "Questions by": answerer ?? "nothing; start with --answerer MODEL" };
    $("library-facts").replaceChildren(...Object.entries(facts).flatMap(([name, value]) =>
      [make("dt", {}, name), make("dd", {}, value)]));
    if (JSON.stringify(folders) !== known) { // else somebody may be at one of the buttons
      $("library-folders").replaceChildren(...(folders.length
        ? folders.map((folder) => this.folder(folder))
        : [make("p", { className: "soft" }, "To add folders from here, start ",
          make("code", {}, "crossgaze serve"), " with ", make("code", {}, "--add FOLDER"), ".")]));
    }
    $("logout").hidden = !token;
    this.seen ??= photographs;
    if (job.state === "running" && !this.adding) this.#follow();
    return this.state;
  }

  /** See photographs that have come: while there are none, and while a folder is being added. */
  async #look() {
    if (document.hidden || this.looking || !this.state || (this.seen && !this.adding)) return;
    this.looking = true;
    try {
      const { photographs, job } = await get("/index");
      const begun = job.state === "running" && !this.adding;
      if (begun || photographs !== this.seen) {
        this.seen = photographs;
        await this.onChange();
      }
    } catch { /* whatever somebody asks for next says it in words; this looks again */ }
    this.looking = false;
  }

  /** A folder with the button that adds it. */
  folder(folder) {
    const button = make("button", { type: "button", className: "plain" }, "Add or update");
    button.onclick = async () => {
      try {
        this.#job(await post("/index", { folder }));
        $("library").close();
        this.#follow();
      } catch (error) {
        $("library").close();
        this.onTrouble(error, () => button.click());
        if (error.status !== 409) return;
        this.busy = error.message; // until what is being added, by whomever, is done
        if (!this.adding) this.#follow();
      }
    };
    return make("div", { className: "folder" }, make("span", {}, folder), button);
  }

  #follow() {
    this.stop?.();
    let silent = false;
    this.stop = follow((job) => {
      if (silent) this.onRecovered();
      silent = false;
      this.#told(job);
    }, (error) => {
      silent = true;
      this.onTrouble(error);
    }, () => this.#again());
    this.onBegin();
  }

  /** The progress was refused, and why a browser does not tell: the index says it in words. */
  async #again() {
    this.stop = null;
    await new Promise((done) => { setTimeout(done, PAUSE); });
    if (this.stop) return; // it is followed again meanwhile
    try {
      const { job } = await get("/index");
      if (job.state === "running") this.#follow();
      this.#told(job);
    } catch (error) {
      this.onTrouble(error, () => this.#again());
    }
  }

  async #told(job) {
    this.#job(job);
    if (job.state === "running") return;
    this.stop = null;
    if (this.busy) this.onOver(this.busy);
    this.busy = null;
    setTimeout(() => { $("job").hidden = !this.stop; }, 8000);
    try {
      await this.onChange();
      this.seen = this.state.photographs;
    } catch (error) {
      this.onTrouble(error);
    }
    // Last, as what cannot be shown is said in the same place.
    const { state, folder, words } = job;
    const why = words.startsWith(`${folder}: `) ? words.slice(folder.length + 2) : words;
    if (state === "failed") this.onTrouble(new Error(`Adding ${folder} failed: ${why}`));
  }

  #job({ state, folder, done, of, seconds_left: left, words }) {
    const bar = $("job-bar");
    $("job").hidden = state === "idle" || state === "failed";
    bar.hidden = state !== "running";
    if (of) bar.value = done / of;
    else bar.removeAttribute("value");
    const far = of ? `${done.toLocaleString("en")} of ${count(of, "photograph")}` : "looking what is new";
    $("job-words").textContent = state === "done" ? `${folder}: ${words}`
      : `Adding ${folder}: ${far}${left === null ? "" : `, ${duration(left)} left`}`;
  }
}

/** Ask for the token until it is right. */
export function login() {
  const dialog = $("login");
  if (!dialog.open) dialog.showModal();
  dialog.oncancel = (event) => event.preventDefault();
  // A browser lets a second Escape through, whatever a page says to the first.
  dialog.onclose = () => dialog.showModal();
  return new Promise((resolve) => {
    $("login-form").onsubmit = async (event) => {
      event.preventDefault();
      try {
        await post("/login", { token: $("token").value });
        $("token").value = $("login-said").textContent = "";
        dialog.onclose = null;
        dialog.close();
        resolve();
      } catch (error) {
        $("login-said").textContent = error.message;
      }
    };
  });
}
