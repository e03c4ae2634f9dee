// The judge page in keyboard mode: Enter sends the answer unless a control has the focus, and the
// single keys work while an answer has it.
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
    const control = document.querySelector(`#work [data-key="${CSS.escape(event.key.toLowerCase())}"]`);
    if (control) { event.preventDefault(); control.click(); }
  }
});
