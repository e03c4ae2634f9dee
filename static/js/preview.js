// A preview is fetched and put into a new frame. Were the form sent to the frame, as without this,
// each preview would be a step of the browser's history, and a reload would ask to send it again.
"use strict";

// A short page leaves no void under it; a long one scrolls in its frame.
const fitFrame = (frame) => {
  const inside = frame.contentDocument?.getElementById("work");
  if (!inside) return;
  const end = inside.getBoundingClientRect().bottom + frame.contentWindow.scrollY;
  frame.style.blockSize = `${Math.min(640, Math.max(240, end + 24))}px`;
};
for (const frame of document.querySelectorAll("iframe.preview")) {
  frame.addEventListener("load", () => fitFrame(frame));
  if (frame.contentDocument?.readyState === "complete") fitFrame(frame);
}

let asked = 0;
const showPreview = async (sent, button) => {
  const number = ++asked, data = new FormData(sent);
  data.append(button.name, button.value);
  const address = button.hasAttribute("formaction") ? button.formAction : sent.action;
  const answer = await fetch(address, { method: "POST", body: data });
  const html = await answer.text(), old = document.getElementsByName("preview")[0];
  if (number !== asked || !answer.ok || !old) return;  // a newer one is on its way
  const fresh = old.cloneNode(), top = old.contentWindow?.scrollY ?? 0;
  fresh.removeAttribute("src");
  fresh.srcdoc = html;
  fresh.addEventListener("load", () => { fitFrame(fresh); fresh.contentWindow.scrollTo(0, top); }, { once: true });
  old.replaceWith(fresh);
};
document.addEventListener("submit", (event) => {
  if (event.submitter?.formTarget !== "preview") return;
  event.preventDefault();
  showPreview(event.target, event.submitter).catch(lost);
});
