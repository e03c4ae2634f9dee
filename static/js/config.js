// The configuration's editor: a problem's link selects its line, the preview follows the text, and
// what was typed outlives a reload, together with what it was made from.
"use strict";

const box = () => document.querySelector("#config-form textarea");
let page = "preview-write";

document.addEventListener("click", (event) => {
  if (event.target.matches("#preview-write, #preview-judge")) page = event.target.id;
  const link = event.target.closest("#problems a[href^='#L']");
  if (!link) return;
  event.preventDefault();
  const number = Number(link.hash.slice(2)), lines = box().value.split("\n");
  const start = lines.slice(0, number - 1).join("\n").length + (number > 1 ? 1 : 0);
  box().focus();
  box().setSelectionRange(start, start + (lines[number - 1] || "").length);
  box().scrollTop = (number - 4) * (box().scrollHeight / lines.length);
});

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id !== "problems" || document.querySelector("[data-errors='1']")) return;
  box().form.requestSubmit(document.getElementById(page));
});

// The name of the text says what it was made from, so it is kept as well: if somebody saved another
// configuration since, the server tells, and nothing of theirs is lost.
const KEPT = `draft-config-${location.pathname}`;
const state = () => ({ text: box().value, name: box().name, base: box().form.elements.base.value });
const given = state(), isTyped = "typed" in box().dataset;  // given back by the server, to be mended
const isSame = (one, other) => one.normalize() === other.normalize();
const discard = document.getElementById("discard");
const keepTyped = () => {
  const isOwn = isTyped || !isSame(box().value, given.text);
  if (isOwn) sessionStorage.setItem(KEPT, JSON.stringify(state()));
  else sessionStorage.removeItem(KEPT);
  discard.hidden = !isOwn;
};
const putTyped = () => {
  const found = JSON.parse(sessionStorage.getItem(KEPT));
  if (!found || isTyped || isSame(found.text, box().value)) return;
  box().value = found.text;
  box().name = found.name;
  box().form.elements.base.value = found.base;
  say(WORDS.restored);
  box().dispatchEvent(new Event("input", { bubbles: true }));
};
putTyped();
keepTyped();
// On the way back to a page that it kept whole, WebKit sets forms that are not to be restored to
// their defaults, without an event and at a time of its own. So what was typed becomes the default.
window.addEventListener("pagehide", () => { box().defaultValue = box().value; });
document.addEventListener("input", (event) => { if (event.target === box()) keepTyped(); });
discard.addEventListener("click", () => {
  sessionStorage.removeItem(KEPT);
  location.assign(location.pathname);
});
