// The list of keys over the page that one is on, and their switch, which keeps the focus.
"use strict";

// What the page at an address says of keys, or whatever its part is; Escape and its button close it.
const openOverlay = async (link) => {
  const response = await fetch(link.href, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!response?.ok) return location.assign(link.href);
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-labelledby", "overlay-title");
  dialog.innerHTML = await response.text();
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();  // gives the focus back once it closes
};

document.addEventListener("htmx:afterSettle", () => {
  const button = document.getElementById("keys-switch");
  if (button) document.body.toggleAttribute("data-keyboard-mode", button.getAttribute("aria-pressed") === "true");
});
