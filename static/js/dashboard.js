// The dashboard's numbers come anew every 30 seconds while the page is seen, until it is paused.
// They never take the focus: while something in them has it, they stay as they are.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const tiles = document.getElementById("tiles"), pause = document.getElementById("pause");
  if (!tiles || !pause) return;
  let paused = false;
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Refresh by itself again" : "Pause refreshing";
    say(paused ? "The numbers stay as they are." : "The numbers refresh every 30 seconds.");
  });
  setInterval(() => {
    if (!paused && !document.hidden && !tiles.contains(document.activeElement)) htmx.trigger(tiles, "refresh");
  }, 30000);
});
