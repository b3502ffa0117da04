// A bar that says in words what went wrong, with a way to try again. There are two: the search's,
// and one for all else, so that nothing else takes the place of a search's "Try again".

import { $ } from "./dom.js";

export class Problem {
  constructor(name) {
    this.place = $(name);
    this.words = $(`${name}-words`);
    this.again = $(`${name}-again`);
    $(`${name}-gone`).onclick = () => this.hide();
  }

  show(error, retry = null) {
    this.words.textContent = error.message;
    // The same words again would be refused again.
    const refused = error.status >= 400 && error.status < 500 && ![408, 429].includes(error.status);
    this.again.hidden = !retry || refused;
    this.again.onclick = () => {
      this.hide();
      retry();
    };
    this.place.hidden = false;
  }

  hide() {
    this.place.hidden = true;
  }

  says(words) {
    return !this.place.hidden && this.words.textContent === words;
  }
}
