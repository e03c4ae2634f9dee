// A weight's slider and its box say the same; without JavaScript the server takes the changed one.
// The address has the weights, and a button copies it.
"use strict";

document.addEventListener("input", (event) => {
  const changed = event.target;
  if (!changed.closest(".slider")) return;
  for (const other of changed.closest(".slider").querySelectorAll("input")) {
    if (other === changed) continue;
    other.value = changed.value;
    if (other.type === "range" && other.value !== changed.value) {  // 2.5 on a slider of whole steps
      other.step = "0.1";
      other.value = changed.value;
    }
  }
}, true);

const button = document.getElementById("copy-link"), said = document.getElementById("status");
if (button) button.hidden = false;
button?.addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    said.textContent = button.dataset.copied;
  } catch {  // not allowed, or the site is not reached by https
    said.textContent = button.dataset.notCopied;
  }
});
