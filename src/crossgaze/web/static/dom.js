// Small helpers. Texts only ever become text nodes: nothing that comes from a file is markup.

export const $ = (id) => document.getElementById(id);

/** Make an element: make("li", { className: "x" }, "text", child, ...). */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-")) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/** Show how much of something there is, as a share of colour. */
export function tint(element, share) {
  element.style.setProperty("--much", `${Math.round(100 * share)}%`);
  element.classList.toggle("strong", share > 0.45);
}

/** Whether a key is pressed by itself: with Alt and the like it is the browser's. */
export const plain = (event) => !(event.altKey || event.ctrlKey || event.metaKey);

/** One Tab stop for a row of buttons; arrows move inside it. */
export function roving(row) {
  const buttons = () => [...row.querySelectorAll("button")];
  const settle = (chosen) => {
    for (const one of buttons()) one.tabIndex = one === chosen ? 0 : -1;
  };
  row.addEventListener("keydown", (event) => {
    if (!plain(event)) return;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const all = buttons(), here = all.indexOf(document.activeElement);
    const to = event.key === "Home" ? 0 : event.key === "End" ? all.length - 1 : here + step;
    if (here < 0 || Number.isNaN(to)) return;
    event.preventDefault();
    event.stopPropagation();
    all[(to + all.length) % all.length].focus();
  });
  row.addEventListener("focusin", (event) => settle(event.target));
  return () => settle(buttons()[0]);
}

export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export function count(number, what) {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}

export function bytes(number) {
  for (const unit of ["bytes", "kB", "MB"]) {
    if (number < 1000) return `${unit === "bytes" ? number : number.toFixed(1)} ${unit}`;
    number /= 1000;
  }
  return `${number.toFixed(1)} GB`;
}

export function duration(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
