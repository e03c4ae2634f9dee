// The model's answer as it comes: server-sent events fill the waiting turn, then htmx asks for the page's part.
"use strict";

const listen = () => {
  const turn = document.getElementById("answering");
  if (!turn || turn.dataset.heard) return;
  turn.dataset.heard = "yes";
  const words = turn.querySelector(".text"), source = new EventSource(turn.dataset.stream);
  const end = (wait) => {
    source.close();
    setTimeout(() => htmx.trigger(turn, "answered"), wait);
  };
  source.addEventListener("message", (event) => { words.textContent = JSON.parse(event.data); });
  source.addEventListener("done", () => end(0));
  source.addEventListener("error", () => end(1000));
};
document.addEventListener("DOMContentLoaded", listen);
document.addEventListener("htmx:afterSettle", listen);
