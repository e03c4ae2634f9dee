// The steps of a new task: the preview follows the typing, and fields are dragged to their places.
// Without it a button shows the preview, and arrows and the field's page do the rest.
"use strict";

let page = "preview-write", waits;
document.addEventListener("click", ({ target }) => {
  if (target.matches("#preview-write, #preview-judge")) page = target.id;
});
const previewSoon = (form) => {
  const button = document.getElementById(page);
  if (!button) return;
  clearTimeout(waits);
  waits = setTimeout(() => form.requestSubmit(button), 700);
};
document.addEventListener("input", ({ target }) => {
  if (target.form?.id === "step-form") previewSoon(target.form);
});
// People type before this script has come, and browsers restore what was typed: no event tells of either.
const step = document.getElementById("step-form");
const isTyped = (field) => "defaultValue" in field && field.value !== field.defaultValue;
if (step && [...step.elements].some(isTyped)) previewSoon(step);
document.addEventListener("submit", ({ submitter }) => {
  if (!submitter?.id.startsWith("preview-")) clearTimeout(waits);
});

let held;
const dropped = (target) => held && target.closest?.("[data-field], [data-place]");
const unmark = () => document.querySelectorAll(".drop").forEach((one) => one.classList.remove("drop"));
document.addEventListener("dragstart", (event) => {
  held = event.target.closest?.("[data-field]");
  if (held) event.dataTransfer.setData("text/plain", held.dataset.field);
});
document.addEventListener("dragover", (event) => {
  const over = dropped(event.target);
  unmark();
  if (!over) return;
  event.preventDefault();
  over.classList.add("drop");
});
document.addEventListener("dragend", () => { held = null; unmark(); });
document.addEventListener("drop", (event) => {
  const over = dropped(event.target);
  if (!over) return;
  event.preventDefault();
  const [place, index] = held.dataset.field.split(":");
  let [to, at] = (over.dataset.field ?? over.dataset.place).split(":");
  if (over.dataset.place && to === place) at -= 1;  // it has left its old place by then
  const form = document.getElementById("fields"), told = form.elements.namedItem("do")[0];
  told.disabled = false;
  told.value = `move:${place}:${index}:${to}:${at}`;
  form.requestSubmit();
});
