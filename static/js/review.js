// Rows of examples by keys and clicks: J and K move, X selects, Shift selects all between.
"use strict";

const act = () => document.getElementById("act");
const rows = () => [...document.querySelectorAll("[data-row]")];
const box = (row) => row.querySelector("[name=example]");
let current = -1, last = -1;

const go = (place) => {
  current = Math.max(0, Math.min(rows().length - 1, place));
  rows()[current]?.focus();
};
const select = (place, on, from) => {
  const [first, end] = [Math.min(place, from), Math.max(place, from)];
  rows().slice(first, end + 1).forEach((row) => { box(row).checked = on; });
  last = current = place;
};

document.addEventListener("click", (event) => {
  const row = event.target.closest("[data-row]");
  if (!row || event.target.closest("a, summary, button")) return;
  const place = rows().indexOf(row), isBox = event.target === box(row);
  const on = isBox ? event.target.checked : !box(row).checked;
  select(place, on, event.shiftKey && last >= 0 ? last : place);
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([name=example]), textarea, select");
  if (!("keyboardMode" in document.body.dataset) || typing || !act()) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const held = document.activeElement?.closest("[data-row]"), key = event.key.toLowerCase();
  if (held) current = rows().indexOf(held);
  if (key === "j") go(current + 1);
  else if (key === "k") go(current - 1);
  else if (key === "x" && current >= 0) select(current, !box(rows()[current]).checked, event.shiftKey && last >= 0 ? last : current);
  // A box that has the focus is an input, in which the page's other keys do nothing.
  else if (event.target.matches("[name=example]")) document.querySelector(`#act [data-key="${CSS.escape(key)}"]`)?.click();
  else return;
  event.preventDefault();
});
// A key acts on the row that has the focus where none is selected, and asks for what it needs.
document.addEventListener("submit", (event) => {
  if (event.target !== act() || !event.submitter) return;
  const none = !act().elements.everything.checked && !rows().some((row) => box(row).checked);
  if (none && current >= 0) box(rows()[current]).checked = true;
  const needed = act().elements[event.submitter.dataset.needs];
  if (!needed || needed.value.trim()) return;
  event.preventDefault();
  needed.focus();
});
