// The judge page in keyboard mode: Enter sends the answer unless a control has the focus, and the
// number keys choose another answer while one has it.
"use strict";

document.addEventListener("keydown", (event) => {
  if (!("keyboardMode" in document.body.dataset)) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const form = document.getElementById("judge-form");
  const focused = event.target.closest("a, button, summary, input, select, textarea");
  if (event.key === "Enter" && !focused) {
    event.preventDefault();
    form?.requestSubmit();
  }
  if (focused?.matches("#judge-form input[type=radio]")) {
    const chosen = form.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (chosen) { event.preventDefault(); chosen.click(); }
  }
});
