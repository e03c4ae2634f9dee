// The dashboard's numbers come again every 30 seconds while the page is seen, until it is paused.
// They never take the focus: while something in them has it, they stay as they are.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const tiles = document.getElementById("tiles"), pause = document.getElementById("pause");
  if (!tiles || !pause) return;
  let paused = false;
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? pause.dataset.resume : pause.dataset.pause;
    say(paused ? pause.dataset.paused : pause.dataset.resumed);
  });
  setInterval(() => {
    if (!paused && !document.hidden && !tiles.contains(document.activeElement)) htmx.trigger(tiles, "refresh");
  }, 30000);
});
