// The page: what is searched for stands in the address, so that back, forward and reload work.

import { $, count, make, plain } from "./dom.js";
import { get, search } from "./api.js";
import { Grid } from "./grid.js";
import { Library, login } from "./library.js";
import { PhotoView } from "./photo.js";
import { Problem } from "./problem.js";
import { Spot } from "./spot.js";

const PAGE = 40;
const AHEAD = 900; // pixels below the screen that are loaded before anybody scrolls there
const FILTERS = ["path", "since", "until", "larger", "smaller", "tag"];
const QUERIES = ["q", "like", "picture"];

let address = new URLSearchParams(location.search);
const pictures = new Map(); // handle -> file that was searched by, as long as the page lives
let next = null; // where the next page begins
let running = null; // aborts the search under way
let sending = null; // the picture that has no answer yet
let settled = true; // whether what the page shows is the last search's answer

const link = (params) => `/${params.size ? `?${params}` : ""}`;
const query = () => new URLSearchParams([...address].filter(([name]) => name !== "photo"));
const filters = () => new URLSearchParams([...address].filter(([name]) => FILTERS.includes(name)));
const filtered = () => filters().size ? [`${count(filters().size, "filter")} on`] : [];
const kind = () => QUERIES.find((name) => address.has(name));

const problem = new Problem("problem"), other = new Problem("other");
const grid = new Grid($("results"), {
  link: (id) => {
    const params = query();
    params.set("photo", id);
    return link(params);
  },
  onOpen: (id) => go({ photo: id }),
});
const spot = new Spot(() => grid.photos.length);
const library = new Library({
  onBegin: () => { if (!$("empty").hidden && !library.state.photographs) empty(0); },
  onChange: async () => {
    await refreshState();
    // What filled no page may find more now; a longer one stays as it is under somebody's eyes.
    if (!sending && (!kind() || grid.photos.length < PAGE)) await run({ again: !kind() || settled });
  },
  onTrouble: (error, retry) => trouble(error, retry, other),
  onRecovered: () => other.hide(),
  onOver: (words) => { if (other.says(words)) other.hide(); },
});
const view = new PhotoView({
  onClose: () => {
    if (!address.has("photo")) return;
    const id = Number(address.get("photo"));
    go({ photo: null });
    grid.focus(id);
  },
  onStep: (step) => {
    const here = grid.photos.findIndex((photo) => photo.id === view.id);
    const photo = grid.photos[here + step];
    if (here >= 0 && photo) go({ photo: photo.id }, { replace: true });
    if (here + step >= grid.photos.length - 5) more();
  },
  onTrouble: (error) => trouble(error),
  linkLike: (id) => link(new URLSearchParams({ like: id })),
});

// The address ------------------------------------------------------------------------------------

function go(changes, { replace = false, search: fresh = false } = {}) {
  for (const [name, value] of Object.entries(changes)) {
    address.delete(name);
    for (const one of [value].flat()) if (one !== null && one !== "") address.append(name, one);
  }
  spot.keep(); // of the entry that is left
  if (fresh) spot.begin();
  history[replace ? "replaceState" : "pushState"](fresh ? null : spot.here, "", link(address));
  if (fresh) {
    fillForms();
    run();
  }
  showPhoto();
}

addEventListener("popstate", () => {
  const before = String(query());
  address = new URLSearchParams(location.search);
  if (String(query()) !== before) {
    spot.comeBack();
    fillForms();
    run();
  }
  showPhoto();
});

function showPhoto() {
  const id = Number(address.get("photo"));
  if (!id) return view.close();
  return view.open(id, {
    sentence: address.get("q") ?? "",
    card: grid.photos.find((photo) => photo.id === id),
    neighbours: neighbours(id),
    asks: Boolean(library.state?.answerer),
  });
}

/** Whether there is a photograph before this one, and one behind it. */
function neighbours(id) {
  const here = grid.photos.findIndex((photo) => photo.id === id);
  return [here > 0, here >= 0 && here < grid.photos.length - 1];
}

function showGrid(photos, offset, stage) {
  grid.show(photos, offset, stage);
  view.setNeighbours(neighbours(view.id)); // of the photograph that is open, if one is
}

// Searching --------------------------------------------------------------------------------------

/** Search for what the address says. What is there stays until there is an answer where a picture
 *  is sent, which may be refused, and where the same photographs are only read again. */
async function run({ file = null, again = false } = {}) {
  running?.abort();
  const mine = running = new AbortController(), before = { next, words: $("status").textContent };
  const interrupted = !settled;
  let stays = Boolean(file) || again, came = false;
  next = null;
  settled = false;
  sending = file;
  if (!again) other.hide();
  if (!stays) turnOver();
  if (!again) say(kind() || file ? "Searching …" : "");
  try {
    if (!kind() && !file) await browse(0, mine.signal, again ? grid.photos.length : 0);
    else {
      const params = limited(file ? filters() : query());
      for await (const answer of search(params, { picture: file, signal: mine.signal })) {
        if (file && stays) arrive(file, answer.picture);
        stays = false;
        came = true;
        show(answer);
      }
    }
    settled = true;
    problem.hide();
    await returnTo(mine.signal);
    watchEnd();
  } catch (error) {
    if (error.name === "AbortError") return;
    if (stays && interrupted) run(); // what is there is no answer yet: ask for it again
    else if (stays) {
      settled = true;
      sending = null;
      next = before.next;
      say(before.words);
      watchEnd();
    } else unanswered(came, error.status);
    // A picture that is refused takes no message's place.
    trouble(error, () => run(stays ? { file, again } : {}), stays && file ? other : problem);
  }
}

/** The search has no answer, or not all of it: say what the photographs are that stay. */
function unanswered(came, refused) {
  if (!grid.photos.length || refused) grid.clear();
  if (!grid.photos.length) say("");
  else if (came) say("Not all of the answer came; these photographs are not in the exact order yet");
  else {
    grid.dim();
    say("These photographs were found before; there is no answer to what was asked last");
  }
  if (library.state?.photographs === 0) empty(0);
}

/** Leave what was found before. */
function turnOver() {
  problem.hide();
  $("empty").hidden = $("asked-sentences").hidden = true;
  scrollTo({ top: 0 });
}

/** A picture has an answer: from now on the address is its search. */
function arrive(file, handle) {
  const typing = $("q").value !== (address.get("q") ?? "");
  pictures.set(handle, file);
  sending = null;
  spot.keep();
  spot.begin();
  for (const name of QUERIES) address.delete(name);
  address.set("picture", handle);
  history.pushState(null, "", link(address));
  if (!typing) $("q").value = "";
  showPicture();
  turnOver();
}

function limited(params, offset = 0) {
  params.set("limit", PAGE);
  if (offset) params.set("offset", offset);
  return params;
}

function show(answer) {
  showGrid(answer.hits, answer.offset, answer.stage);
  if (answer.stage !== "ranked") return;
  next = answer.next_offset;
  if (answer.offset) return;
  sentences(answer.sentences);
  if (!answer.hits.length) empty(answer.total);
  else $("empty").hidden = true;
  if (!answer.total) return say("");
  const told = [count(grid.photos.length ? answer.looked_at : 0, "photograph")];
  told[0] += answer.looked_at < answer.total ? ` of ${answer.total.toLocaleString("en")} compared` : " compared";
  told.push(`${Math.round(answer.milliseconds)} ms`);
  if (answer.unknown.length) told.push(`not known to the model: ${answer.unknown.join(", ")}`);
  say(["Best first", ...filtered(), ...told].join(" · "));
}

/** Show photographs from a place on, at least so many. */
async function browse(offset, signal, least = 0) {
  let page = await get(`/images?${limited(filters(), offset)}`, signal);
  const photographs = [...page.photographs];
  while (photographs.length < least && page.next_offset !== null) {
    page = await get(`/images?${limited(filters(), page.next_offset)}`, signal);
    photographs.push(...page.photographs);
  }
  if (!offset && !least) grid.clear();
  showGrid(photographs, offset);
  next = page.next_offset;
  if (offset) return;
  $("empty").hidden = true;
  const some = page.found < page.total ? ` of ${page.total.toLocaleString("en")}` : "";
  const told = [`${count(page.found, "photograph")}${some}`, "newest first", ...filtered()];
  say(page.total ? told.join(" · ") : "");
  if (!page.found) empty(page.total);
}

let loading = false;
async function more() {
  if (next === null || loading) return;
  loading = true;
  const signal = running?.signal, offset = next;
  try {
    if (!kind()) await browse(offset, signal);
    else show(await get(`/search?${limited(query(), offset)}`, signal));
    watchEnd();
  } catch (error) {
    if (error.name !== "AbortError") trouble(error, watchEnd);
  } finally {
    loading = false;
  }
}

/** Let whoever comes back to a list be where they were in it. */
async function returnTo(signal) {
  for (let before = -1; spot.short && grid.photos.length > before;) {
    before = grid.photos.length;
    await more();
    if (signal.aborted) return;
  }
  spot.arrive();
}

const end = new IntersectionObserver((seen) => seen.at(-1).isIntersecting && more(),
  { rootMargin: `${AHEAD}px` });

/** Load another page if the end is in sight, now or as soon as somebody scrolls there. An observer
 *  tells only of changes from one frame to the next, and none is seen where a page does not fill a
 *  large screen or somebody scrolls to the new end within a frame: one that begins anew tells. */
function watchEnd() {
  end.disconnect();
  end.observe($("more"));
}

// Words ------------------------------------------------------------------------------------------

function say(words) {
  $("status").textContent = words;
  document.title = address.get("q") ? `${address.get("q")} · crossgaze` : "crossgaze";
}

/** Say what went wrong. The same words are said once: by the search, where it says them. */
async function trouble(error, retry = null, place = problem) {
  if (error.status === 401) {
    await login();
    start();
    return;
  }
  error.message = called(error.message);
  if (place === problem && other.says(error.message)) other.hide();
  if (place === problem || !problem.says(error.message)) place.show(error, retry);
}

function sentences(found) {
  $("asked-sentences").hidden = !found.length;
  $("asked-sentences").replaceChildren(...found.map(({ text, score }) => {
    const button = make("button", { type: "button", className: "said" },
      make("span", {}, text), make("small", {}, score.toFixed(3)));
    button.onclick = () => ask(text);
    return make("li", {}, button);
  }));
}

function empty(total) {
  const place = $("empty"), folders = library.state?.folders ?? [];
  if (!total) library.wait();
  if (total) {
    const clear = make("button", { type: "button", className: "plain" }, "Clear the filters");
    clear.onclick = () => $("filters").reset();
    place.replaceChildren(make("h2", {}, "Nothing found"),
      make("p", { className: "soft" }, "No photograph passes these filters."), clear);
  } else if (library.adding) {
    place.replaceChildren(make("h2", {}, "No photographs yet"),
      make("p", { className: "soft" }, "A folder is being read; its photographs appear here as they come."));
  } else if (folders.length) {
    place.replaceChildren(make("h2", {}, "No photographs yet"),
      make("p", { className: "soft" }, "Add a folder; you can search while it is being read."),
      ...folders.map((folder) => library.folder(folder)));
  } else {
    place.replaceChildren(make("h2", {}, "No photographs yet"),
      make("p", { className: "soft" }, "Fill the index from a terminal; this page sees it by itself:"),
      make("code", {}, "crossgaze index PHOTOS/ --into INDEX/"),
      make("p", { className: "soft" }, "or start crossgaze serve with --add PHOTOS/ to do it from here."));
  }
  place.hidden = false;
}

// The forms --------------------------------------------------------------------------------------

const ask = (sentence) => {
  go({ q: sentence, like: null, picture: null, photo: null }, { search: true });
};

$("search").onsubmit = (event) => {
  event.preventDefault();
  ask($("q").value.trim());
  $("q").blur();
};
$("upload").onclick = () => $("file").click();
$("file").onchange = () => {
  if ($("file").files[0]) byPicture($("file").files[0]);
  $("file").value = "";
};
$("picture-gone").onclick = () => ask($("q").value.trim());

function byPicture(file) {
  const most = library.state?.upload_bytes ?? Infinity;
  if (file.size > most) {
    const words = `This picture is too large: at most ${(most / 1e6).toFixed(0)} MB can be sent.`;
    trouble(new Error(words), null, other);
    return;
  }
  if (address.has("photo")) go({ photo: null }); // what goes wrong is said behind it
  run({ file });
}

/** Show the picture that is searched by; of one sent before a reload, that there is one. */
function showPicture() {
  const shown = $("picture-shown"), like = address.get("like"), handle = address.get("picture");
  const file = pictures.get(handle);
  if (shown.src.startsWith("blob:")) URL.revokeObjectURL(shown.src);
  $("picture").hidden = !(like || handle);
  if (like) shown.src = `/images/${encodeURIComponent(like)}/thumbnail`;
  else if (file) shown.src = URL.createObjectURL(file);
  else if (handle) shown.src = "/static/picture.svg";
  else shown.removeAttribute("src");
  $("q").placeholder = like || handle ? "Photographs like this one" : "Describe a photograph";
}

/** Let the forms say what the address does. Only where somebody goes: others may be typing. */
function fillForms() {
  $("q").value = address.get("q") ?? "";
  showPicture();
  const form = $("filters"), active = filters();
  for (const input of form.querySelectorAll("label > input:not([type=checkbox])")) {
    input.value = active.get(input.name) ?? "";
  }
  for (const box of form.querySelectorAll("input[type=checkbox]")) {
    box.checked = active.getAll("tag").includes(box.value);
  }
  if (active.size) openFilters(true);
  const name = active.size ? `Filters (${active.size} on)` : "Filters";
  $("filters-open").classList.toggle("on", Boolean(active.size));
  $("filters-open").setAttribute("aria-label", name);
  $("filters-open").title = name;
}

/** Return what is wrong with a filter, by the name of its field. */
function called(words) {
  const [, name, rest] = words.match(/^(\w+): (.*)$/s) ?? [];
  const field = FILTERS.includes(name) && $("filters").querySelector(`label > [name="${name}"]`);
  return field ? `${field.parentNode.textContent.trim()}: ${rest}` : words;
}

function openFilters(open) {
  $("filters").hidden = !open;
  $("filters-open").setAttribute("aria-expanded", String(open));
}
$("filters-open").onclick = () => {
  openFilters($("filters").hidden);
  if (!$("filters").hidden) $("filters").querySelector("input").focus();
};
$("filters").onsubmit = (event) => {
  event.preventDefault();
  const given = new FormData($("filters")), changes = {};
  for (const name of FILTERS) changes[name] = given.getAll(name).map((value) => value.trim());
  go(changes, { search: true });
};
$("filters").onreset = () => {
  go(Object.fromEntries(FILTERS.map((name) => [name, null])), { search: true });
};

// Drop, paste, keys ------------------------------------------------------------------------------

const holdsFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
addEventListener("dragover", (event) => {
  if (!holdsFile(event)) return;
  event.preventDefault();
  $("drop").hidden = false;
});
addEventListener("dragleave", (event) => { if (!event.relatedTarget) $("drop").hidden = true; });
addEventListener("drop", (event) => {
  if (!holdsFile(event)) return;
  event.preventDefault();
  $("drop").hidden = true;
  const [file] = event.dataTransfer.files; // none, where it is a folder or a picture of a page
  if (file) byPicture(file);
});
addEventListener("paste", (event) => {
  const file = [...(event.clipboardData?.files ?? [])].find((one) => one.type.startsWith("image/"));
  if (file) byPicture(file);
});
addEventListener("keydown", (event) => {
  if (event.key !== "/" || !plain(event) || event.target.closest("input, dialog[open]")) return;
  event.preventDefault();
  $("q").focus();
  $("q").select();
});

// The beginning ----------------------------------------------------------------------------------

let offered = ""; // the tags among the filters
async function refreshState() {
  const first = !library.state;
  const { tags } = await library.load();
  const active = filters().getAll("tag");
  const chosen = first ? active
    : [...$("tags").querySelectorAll(":checked")].map((box) => box.value);
  const all = [...new Set([...tags, ...active])]; // a filter that is on can always be taken off
  if (JSON.stringify(all) === offered) return; // else somebody may be at one of them
  offered = JSON.stringify(all);
  $("tags").hidden = !all.length;
  $("tags").replaceChildren(make("legend", {}, "Tags"), ...all.map((tag) => make("label", {},
    make("input", { type: "checkbox", name: "tag", value: tag, checked: chosen.includes(tag) }),
    tag)));
}

async function start() {
  try {
    await refreshState();
  } catch (error) {
    trouble(error, start);
    return;
  }
  showPicture(); // its thumbnail may have wanted the token
  await run();
  if (address.has("photo")) showPhoto();
}
fillForms();
start();
