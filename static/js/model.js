// A model's state comes again every five seconds until it is over: not while nobody looks at it.
"use strict";

document.addEventListener("htmx:beforeRequest", (event) => {
  const job = event.detail.elt;
  const isRead = job.contains(document.activeElement) || job.querySelector?.("details[open]");
  if (job.id === "job" && (document.hidden || isRead)) event.preventDefault();
});
