// Answers as they come: server-sent events fill the waiting turn, then htmx asks for the page's part.
"use strict";

const listen = () => {
  const turn = document.getElementById("answering");
  if (!turn || turn.dataset.heard) return;
  turn.dataset.heard = "yes";
  const words = turn.querySelectorAll(".text"), source = new EventSource(turn.dataset.stream);
  const end = (wait) => {
    source.close();
    setTimeout(() => htmx.trigger(turn, "answered"), wait);
  };
  source.addEventListener("message", (event) => {
    JSON.parse(event.data).forEach((text, place) => { words[place].textContent = text; });
  });
  source.addEventListener("done", () => end(0));
  source.addEventListener("error", () => end(1000));
};
document.addEventListener("DOMContentLoaded", listen);
document.addEventListener("htmx:afterSettle", listen);
