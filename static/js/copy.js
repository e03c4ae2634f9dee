// A button that copies what is shown once; without it people select the text.
"use strict";

const copy = async (source, said, told) => {
  try {
    await navigator.clipboard.writeText(source.textContent);
    said.textContent = told.copied;
  } catch {  // not allowed, or the site is not reached by https
    getSelection().selectAllChildren(source);
    said.textContent = told.notCopied;
  }
};
document.querySelectorAll("[data-copy]").forEach((button) => {
  button.hidden = false;
  button.addEventListener("click", () => {
    copy(document.getElementById(button.dataset.copy), document.getElementById("status"), button.dataset);
  });
});
