// Where in the list somebody is, kept in each entry of the history, so that whoever comes back to a
// list comes back to the place. Not by the browser: it scrolls while the list is still empty, and
// then keeps the end in sight while the list fills, so that page after page is loaded.

const MOST = 400; // photographs that are loaded again at once; further down, a list begins anew
const PAUSE = 200; // milliseconds without scrolling before a place is kept

export class Spot {
  constructor(count) {
    history.scrollRestoration = "manual";
    this.count = count;
    this.comeBack();
    let pause;
    addEventListener("scroll", () => {
      if (scrollY) this.wanted = null; // somebody scrolls: wherever they were, they are here now
      clearTimeout(pause);
      pause = setTimeout(() => this.keep(), PAUSE);
    });
  }

  /** Where somebody is, or will be as soon as the list is that long again. */
  get here() {
    return this.wanted ?? { top: scrollY, shown: this.count() };
  }

  keep() {
    history.replaceState(this.here, "");
  }

  /** Want the place that the history's entry holds. */
  comeBack() {
    const kept = history.state;
    this.wanted = kept?.top && kept.shown <= MOST ? kept : null;
  }

  /** Want none: a list is seen from its top. */
  begin() {
    this.wanted = null;
  }

  /** Whether the list is too short for the place that is wanted. */
  get short() {
    return Boolean(this.wanted) && this.count() < this.wanted.shown;
  }

  arrive() {
    if (this.wanted) scrollTo({ top: this.wanted.top });
    this.wanted = null;
  }
}
