// The row with Submit sticks to the lower edge of a small screen, but only where it lies over nothing
// that is to be read or filled: the form gets a class, and pages.css does the rest.
"use strict";

const READ_OR_FILLED = ".field, .hint, .fillers";
const placeBar = () => {
  const form = document.getElementById("write-form");
  const bar = form?.querySelector(".submit");
  if (!bar) return;
  const upper = innerHeight - bar.offsetHeight;
  const isCovered = (one) => {
    const box = one.getBoundingClientRect();
    return box.height > 0 && box.top < innerHeight && box.bottom > upper;
  };
  form.classList.toggle("has-bar", ![...form.querySelectorAll(READ_OR_FILLED)].some(isCovered));
};
let isDue = false;
const placeBarSoon = () => {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => { isDue = false; placeBar(); });
};
for (const name of ["input", "focusin", "scroll"]) document.addEventListener(name, placeBarSoon, { passive: true });
for (const name of ["htmx:afterSettle", "toggle"]) document.addEventListener(name, placeBarSoon, true);
addEventListener("resize", placeBarSoon);
placeBarSoon();
