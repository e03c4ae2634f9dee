// The seconds that a harmful text is in view: of a visible page, whose person has moved lately.
// The server caps each report by its own clock.
"use strict";

const EACH = 15, IDLE = 120;  // seconds
let inView = 0, moved = performance.now();

const address = document.querySelector("[data-seen]").dataset.seen;
const isInView = () => {
  const box = document.getElementById("work")?.getBoundingClientRect();
  const isThere = box && box.height > 0 && box.bottom > 0 && box.top < window.innerHeight;
  return isThere && document.visibilityState === "visible" && performance.now() - moved < IDLE * 1000;
};
const report = () => {
  const token = document.querySelector("[name=csrfmiddlewaretoken]");
  if (!inView || !token) return;
  const body = new FormData();
  body.append("seconds", inView);
  body.append("csrfmiddlewaretoken", token.value);
  navigator.sendBeacon(address, body);
  inView = 0;
};
setInterval(() => {
  if (isInView()) inView += 1;
  if (inView >= EACH) report();
}, 1000);
for (const kind of ["pointermove", "keydown", "scroll", "touchstart"]) {
  document.addEventListener(kind, () => { moved = performance.now(); }, { passive: true });
}
document.addEventListener("visibilitychange", () => { if (document.hidden) report(); });
