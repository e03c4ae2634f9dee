// A button that copies what is shown once; without it people select the text.
"use strict";

const copy = async (source, said) => {
  try {
    await navigator.clipboard.writeText(source.textContent);
    said.textContent = "Copied.";
  } catch {  // not allowed, or the site is not reached by https
    getSelection().selectAllChildren(source);
    said.textContent = "The browser does not copy for this page. The text is selected.";
  }
};
document.querySelectorAll("[data-copy]").forEach((button) => {
  button.hidden = false;
  button.addEventListener("click", () => {
    copy(document.getElementById(button.dataset.copy), document.getElementById("status"));
  });
});
