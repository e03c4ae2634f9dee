// The configuration's editor: a problem's link selects its line, and the preview follows the text.
"use strict";

const box = () => document.getElementById("id_text");
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
