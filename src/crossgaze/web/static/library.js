// What the index is, adding folders with progress, and the token.

import { $, count, duration, make } from "./dom.js";
import { follow, get, post } from "./api.js";

const PAUSE = 2000; // milliseconds before a progress that was refused is asked for again

export class Library {
  constructor({ onChange, onTrouble, onRecovered }) {
    this.onChange = onChange;
    this.onTrouble = onTrouble;
    this.onRecovered = onRecovered;
    this.state = null;
    $("library-open").onclick = async () => {
      try {
        await this.load();
        $("library").showModal();
      } catch (error) {
        onTrouble(error, () => $("library-open").click());
      }
    };
    $("library-close").onclick = () => $("library").close();
    $("logout").onclick = async () => {
      await post("/logout", {});
      location.assign("/");
    };
  }

  async load() {
    this.state = await get("/index");
    const { photographs, sentences, embedder, reranker, answerer, folders, token, job } = this.state;
    const facts = { Photographs: photographs.toLocaleString("en"), Sentences: sentences.toLocaleString("en"),
      "Candidates by": embedder, "Exact order by": reranker ? `it and ${reranker}, their mean` : "it alone",
      "Questions by": answerer ?? "nothing; start with --answerer MODEL" };
    $("library-facts").replaceChildren(...Object.entries(facts).flatMap(([name, value]) =>
      [make("dt", {}, name), make("dd", {}, value)]));
    $("library-folders").replaceChildren(...(folders.length
      ? folders.map((folder) => this.folder(folder))
      : [make("p", { className: "soft" }, "To add folders from here, start ",
        make("code", {}, "crossgaze serve"), " with ", make("code", {}, "--add FOLDER"), ".")]));
    $("logout").hidden = !token;
    if (job.state === "running") this.#follow();
    return this.state;
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
    setTimeout(() => { $("job").hidden = !this.stop; }, 8000);
    try {
      await this.onChange();
    } catch (error) {
      this.onTrouble(error);
    }
    // Last, as showing what is new takes away what was said before.
    const { state, folder, words } = job;
    if (state === "failed") this.onTrouble(new Error(`Adding ${folder} failed: ${words}`));
  }

  #job({ state, folder, done, of, seconds_left: left, words }) {
    const bar = $("job-bar");
    $("job").hidden = state === "idle" || state === "failed";
    bar.hidden = state !== "running";
    if (of) bar.value = done / of;
    else bar.removeAttribute("value");
    const far = of ? `${done.toLocaleString("en")} of ${count(of, "photograph")}` : "looking what is new";
    $("job-words").textContent = state === "done" ? `${folder}: ${words}`
      : `Adding ${folder}: ${far}${left ? `, ${duration(left)} left` : ""}`;
  }
}

/** Ask for the token until it is right. */
export function login() {
  const dialog = $("login");
  if (!dialog.open) dialog.showModal();
  dialog.oncancel = (event) => event.preventDefault();
  return new Promise((resolve) => {
    $("login-form").onsubmit = async (event) => {
      event.preventDefault();
      try {
        await post("/login", { token: $("token").value });
        $("token").value = $("login-said").textContent = "";
        dialog.close();
        resolve();
      } catch (error) {
        $("login-said").textContent = error.message;
      }
    };
  });
}
