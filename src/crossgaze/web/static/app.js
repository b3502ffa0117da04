// The page: what is searched for stands in the address, so that back, forward and reload work.

import { $, count, make } from "./dom.js";
import { get, search } from "./api.js";
import { Grid } from "./grid.js";
import { Library, login } from "./library.js";
import { PhotoView } from "./photo.js";

const PAGE = 40;
const AHEAD = 900; // pixels below the screen that are loaded before anybody scrolls there
const FILTERS = ["path", "since", "until", "larger", "smaller", "tag"];
const QUERIES = ["q", "like", "picture"];

let address = new URLSearchParams(location.search);
let picture = null; // the file that was searched by, as long as the page lives
let next = null; // where the next page begins
let running = null; // aborts the search under way

const link = (params) => `/${params.size ? `?${params}` : ""}`;
const query = () => new URLSearchParams([...address].filter(([name]) => name !== "photo"));
const filters = () => new URLSearchParams([...address].filter(([name]) => FILTERS.includes(name)));
const kind = () => QUERIES.find((name) => address.has(name));

const grid = new Grid($("results"), {
  link: (id) => {
    const params = query();
    params.set("photo", id);
    return link(params);
  },
  onOpen: (id) => go({ photo: id }),
});
const library = new Library({
  onChange: async () => {
    await refreshState();
    if (!kind()) run();
  },
  onTrouble: (error, retry) => trouble(error, retry),
  onRecovered: () => { $("problem").hidden = true; },
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
  history[replace ? "replaceState" : "pushState"]({}, "", link(address));
  if (fresh) run();
  showPhoto();
}

addEventListener("popstate", () => {
  const before = String(query());
  address = new URLSearchParams(location.search);
  if (String(query()) !== before) run();
  showPhoto();
});

function showPhoto() {
  const id = Number(address.get("photo"));
  if (!id) return view.close();
  const here = grid.photos.findIndex((photo) => photo.id === id);
  return view.open(id, {
    sentence: address.get("q") ?? "",
    card: grid.photos[here],
    neighbours: [here > 0, here >= 0 && here < grid.photos.length - 1],
    asks: Boolean(library.state?.answerer),
  });
}

// Searching --------------------------------------------------------------------------------------

async function run(file = null) {
  running?.abort();
  const mine = running = new AbortController();
  next = null;
  if (!file && kind() !== "picture") picture = null;
  $("problem").hidden = $("empty").hidden = $("asked-sentences").hidden = true;
  fillForms();
  scrollTo({ top: 0 });
  say(kind() || file ? "Searching …" : "");
  try {
    if (!kind() && !file) await browse(0, mine.signal);
    else {
      const params = limited(file ? filters() : query());
      const lines = search(params, { picture: file, signal: mine.signal });
      for await (const answer of lines) show(answer);
    }
    watchEnd();
  } catch (error) {
    if (error.name === "AbortError") return;
    say("");
    if (!grid.photos.length || error.status) grid.clear();
    trouble(error, () => run(file));
  }
}

function limited(params, offset = 0) {
  params.set("limit", PAGE);
  if (offset) params.set("offset", offset);
  return params;
}

function show(answer) {
  grid.show(answer.hits, answer.offset, answer.stage);
  if (answer.picture && address.get("picture") !== answer.picture) {
    for (const name of QUERIES) address.delete(name);
    address.set("picture", answer.picture);
    history.replaceState({}, "", link(address));
    grid.show(answer.hits, answer.offset, answer.stage);
  }
  if (answer.stage !== "ranked") return;
  next = answer.next_offset;
  if (answer.offset) return;
  const told = [count(grid.photos.length ? answer.looked_at : 0, "photograph")];
  told[0] += answer.looked_at < answer.total ? ` of ${answer.total.toLocaleString("en")} compared` : " compared";
  told.push(`${Math.round(answer.milliseconds)} ms`);
  if (answer.unknown.length) told.push(`not known to the model: ${answer.unknown.join(", ")}`);
  say(`Best first · ${told.join(" · ")}`);
  sentences(answer.sentences);
  if (!answer.hits.length) empty(answer.total);
}

async function browse(offset, signal) {
  const page = await get(`/images?${limited(filters(), offset)}`, signal);
  if (!offset) grid.clear();
  grid.show(page.photographs, offset);
  next = page.next_offset;
  if (offset) return;
  const some = page.found < page.total ? ` of ${page.total.toLocaleString("en")}` : "";
  say(page.total ? `${count(page.found, "photograph")}${some} · newest first` : "");
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

async function trouble(error, retry = null) {
  if (error.status === 401) {
    await login();
    start();
    return;
  }
  $("problem-words").textContent = error.message;
  // The same words again would be refused again.
  const refused = error.status >= 400 && error.status < 500 && ![408, 429].includes(error.status);
  $("problem-again").hidden = !retry || refused;
  $("problem-again").onclick = () => {
    $("problem").hidden = true;
    retry();
  };
  $("problem").hidden = false;
}
$("problem-gone").onclick = () => { $("problem").hidden = true; };

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
  if (total) {
    const clear = make("button", { type: "button", className: "plain" }, "Clear the filters");
    clear.onclick = () => $("filters").reset();
    place.replaceChildren(make("h2", {}, "Nothing found"),
      make("p", { className: "soft" }, "No photograph passes these filters."), clear);
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
  picture = null;
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
    trouble(new Error(`This picture is too large: at most ${(most / 1e6).toFixed(0)} MB can be sent.`));
    return;
  }
  picture = file;
  for (const name of [...QUERIES, "photo"]) address.delete(name);
  history.pushState({}, "", link(address));
  view.close();
  run(file);
}

function fillForms() {
  $("q").value = address.get("q") ?? "";
  const shown = $("picture-shown"), like = address.get("like");
  if (shown.src.startsWith("blob:")) URL.revokeObjectURL(shown.src);
  $("picture").hidden = !(picture || like);
  if (like) shown.src = `/images/${encodeURIComponent(like)}/thumbnail`;
  else if (picture) shown.src = URL.createObjectURL(picture);
  else shown.removeAttribute("src");
  $("q").placeholder = picture || like ? "Photographs like this one" : "Describe a photograph";
  const form = $("filters"), active = filters();
  for (const input of form.querySelectorAll("label > input:not([type=checkbox])")) {
    input.value = active.get(input.name) ?? "";
  }
  for (const box of form.querySelectorAll("input[type=checkbox]")) {
    box.checked = active.getAll("tag").includes(box.value);
  }
  if (active.size) openFilters(true);
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
  byPicture(event.dataTransfer.files[0]);
});
addEventListener("paste", (event) => {
  const file = [...(event.clipboardData?.files ?? [])].find((one) => one.type.startsWith("image/"));
  if (file) byPicture(file);
});
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, dialog[open]")) return;
  event.preventDefault();
  $("q").focus();
  $("q").select();
});

// The beginning ----------------------------------------------------------------------------------

async function refreshState() {
  const { tags } = await library.load();
  $("tags").hidden = !tags.length;
  $("tags").replaceChildren(make("legend", {}, "Tags"), ...tags.map((tag) => make("label", {},
    make("input", { type: "checkbox", name: "tag", value: tag }), tag)));
}

async function start() {
  try {
    await refreshState();
  } catch (error) {
    trouble(error, start);
    return;
  }
  await run();
  if (address.has("photo")) showPhoto();
}
start();
