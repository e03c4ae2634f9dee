// How a text was typed: characters pasted, seconds to the first input and of active writing. It is
// sent along as evidence for the task's owners; nothing depends on it.
"use strict";

const PAUSE = 120;  // seconds; a longer gap is no writing
const fresh = () => ({ shown: performance.now(), first: null, last: null, active: 0, pasted: 0 });
let typing = fresh();
const isText = (element) => element.matches?.("#write-form textarea, #write-form input[type=text]");

document.addEventListener("input", (event) => {
  if (!isText(event.target)) return;
  const now = performance.now();
  typing.first ??= now;
  const gap = (now - (typing.last ?? now)) / 1000;
  if (gap <= PAUSE) typing.active += gap;
  typing.last = now;
});
const pasted = (event, data) => {
  if (!isText(event.target)) return;
  typing.pasted += Array.from(data?.getData("text") || "").length;
  // Of a text for which pasting is off, it counts what somebody tried to paste.
  if (!event.target.closest("[data-paste=off]")) return;
  event.preventDefault();
  const line = document.getElementById("paste-refused");
  if (line) line.textContent = line.dataset.words;
};
document.addEventListener("paste", (event) => pasted(event, event.clipboardData));
document.addEventListener("drop", (event) => pasted(event, event.dataTransfer));

// Shown by the script that switches pasting off: without it, pasting works and nothing is to be said.
const showPasteOff = () => {
  const isOff = document.querySelector("#write-form[data-paste=off]");
  document.getElementById("paste-off")?.toggleAttribute("hidden", !isOff);
};
showPasteOff();
document.addEventListener("htmx:afterSettle", showPasteOff);
document.addEventListener("click", (event) => {
  if (event.target.id !== "allow-paste") return;
  document.getElementById("write-form").removeAttribute("data-paste");
  showPasteOff();
  document.querySelector("#write-form textarea, #write-form input[type=text]")?.focus();
});

document.addEventListener("htmx:configRequest", (event) => {
  if (event.detail.elt.id !== "write-form") return;
  const sent = event.detail.parameters;
  sent.pasted = typing.pasted;
  sent.first_input = (((typing.first ?? performance.now()) - typing.shown) / 1000).toFixed(1);
  sent.active = typing.active.toFixed(1);
});
// A stored example or another passage begins a new text; a refused one goes on.
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.elt.id === "work" || document.querySelector("#verdict [autofocus]")) typing = fresh();
});
