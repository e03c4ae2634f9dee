// A weight's slider and its box say the same; without JavaScript the server takes the changed one.
"use strict";

document.addEventListener("input", (event) => {
  const changed = event.target;
  if (!changed.closest(".slider")) return;
  for (const other of changed.closest(".slider").querySelectorAll("input")) {
    if (other !== changed) other.value = changed.value;
  }
}, true);
