// Small helps over pages that work without: status while waiting, offline, drafts in the browser,
// a character counter, Ctrl+Enter, single keys. No framework, no state that the server trusts.
"use strict";

const WORDS = document.currentScript.dataset;  // in the language of the page
const say = (text) => { document.getElementById("status").textContent = text; };
const form = () => document.getElementById("write-form");
const draftKey = () => form()?.dataset.draftKey;

// Waiting: the button keeps its focus and is only said to be busy.
let slow;
document.addEventListener("htmx:beforeRequest", (event) => {
  const element = event.detail.elt, cause = event.detail.requestConfig.triggeringEvent?.type;
  if (cause === "submit" || cause === "click") say("");  // what was said was about what was done before
  if (!element.matches("form, [data-waiting]")) return;
  element.setAttribute("aria-busy", "true");
  element.querySelector("button:not([type=button])")?.setAttribute("aria-disabled", "true");
  if (element.dataset.waiting) slow = setTimeout(() => say(element.dataset.waiting), 1000);
});
document.addEventListener("htmx:afterRequest", (event) => {
  const element = event.detail.requestConfig.elt;  // which the answer may have replaced
  if (!element.matches("form, [data-waiting]")) return;
  clearTimeout(slow);
  if (document.getElementById("status").textContent === element.dataset.waiting) say("");
  element.removeAttribute("aria-busy");
  element.querySelector("button[aria-disabled]")?.removeAttribute("aria-disabled");
});
// Signing in elsewhere changes the token; the cookie has the one that counts now.
document.addEventListener("htmx:configRequest", (event) => {
  const sent = event.detail.parameters, token = document.cookie.match(/csrftoken=(\w+)/);
  if (token && sent.csrfmiddlewaretoken) sent.csrfmiddlewaretoken = token[1];
});
// What went wrong stays in sight, however far down the page one is, until something works again.
const warn = (text) => { document.getElementById("alert").textContent = text; };
const kept = () => draftKey() ? ` ${WORDS.kept}` : "";
const lost = () => warn(WORDS.lost + kept());
document.addEventListener("htmx:sendError", lost);
document.addEventListener("htmx:timeout", lost);
document.addEventListener("htmx:responseError", (event) => {
  const id = event.detail.xhr.getResponseHeader("X-Request-Id") || WORDS.unknown;
  warn(WORDS.failed.replace("{id}", id) + kept());
});
document.addEventListener("htmx:afterOnLoad", (event) => { if (event.detail.successful) warn(""); });

// What was submitted is no draft any more; what is edited again is one.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.target?.id === "draft-line" && document.getElementById("verdict")) event.preventDefault();
});
// A draft that could not save itself says nothing; sending the form will.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { target, xhr } = event.detail;
  if (target.id === "draft-line" && xhr.status !== 200) event.detail.shouldSwap = false;
});

// Focus goes to what the server marks; a sentence to start from is selected, so that typing replaces it.
// A field that waits for a text takes it without scrolling, so that what one has to read stays in view. Where a
// keyboard would cover that, or where it is long, the goal takes it, and on a new page nothing. Who chose to edit
// goes to the text.
const FOCUSED = "[autofocus], [data-focus]";
const LINES_AT_A_GLANCE = 3;
const isLong = (text) => text.scrollHeight > (LINES_AT_A_GLANCE + .5) * parseFloat(getComputedStyle(text).lineHeight);
const opensAtReading = () => matchMedia("(pointer: coarse), (max-width: 40rem)").matches || [...document.querySelectorAll(".read .text")].some(isLong);
const begin = (part) => {
  let marked = part.matches?.(FOCUSED) ? part : part.querySelector?.(FOCUSED);
  if (opensAtReading() && marked?.matches("[data-focus]") && part.id !== "form") marked = part === document ? null : document.getElementById("goal");
  const exchange = marked?.closest("#vote") && [...document.querySelectorAll(".exchange")].at(-1);
  marked?.focus({ preventScroll: exchange || part === document && marked.matches("[data-focus]") });
  // One error is said at its field alone, which comes into view; the summary is for screen readers then.
  const wrong = marked?.matches(".error-summary:has(li:only-child > a)") && marked.querySelector("a").hash.slice(1);
  document.getElementById(wrong)?.closest(".field")?.scrollIntoView({ block: "nearest" });
  // Two answers are read from their top; the choices stick to the lower edge.
  exchange?.scrollIntoView();
  // Another text begins at the top, as a page does: a goal that sticks takes the focus without a scroll.
  if (marked?.id === "goal" && part.contains(marked)) scrollTo(0, 0);
  // The next button's focus may have scrolled what it follows beneath the head: the verdict is read first.
  const verdict = marked?.id === "next" && document.getElementById("verdict");
  const above = verdict ? document.querySelector("header.site").getBoundingClientRect().bottom - verdict.getBoundingClientRect().top : 0;
  if (above > 0) scrollBy(0, -Math.ceil(above));
  if (marked?.matches("textarea")) marked.setSelectionRange(marked.value.length, marked.value.length);
  if ("select" in (marked?.dataset ?? {}) && marked.value === marked.dataset.given) marked.select();
};
document.addEventListener("htmx:afterSettle", (event) => {
  const target = event.detail.elt;
  if (target.id === "form") document.getElementById("result").replaceChildren();
  begin(target);
  if (target.querySelector?.("#verdict") && draftKey()) localStorage.removeItem(draftKey());
  if (target.id === "result") forgetErrors();
  // A suggestion that was taken is the text now, in this browser's copy too.
  const asked = event.detail.requestConfig?.elt;
  if (asked?.closest("#support") && typed()) remember();
  count();
});

// The form stays while its answer is swapped in below; what was wrong before is not wrong now.
const forgetErrors = () => {
  document.querySelectorAll("#error-summary, #write-form .field-error").forEach((error) => error.remove());
  document.querySelectorAll("#write-form .field-invalid").forEach((field) => field.classList.remove("field-invalid"));
  document.querySelectorAll("#write-form [aria-invalid]").forEach((field) => field.removeAttribute("aria-invalid"));
};

// Drafts: the server's copy is the truth; this one outlives an outage.
const typed = () => form()?.querySelector("textarea");
const isTicked = (field) => field.type === "checkbox" || field.type === "radio";
// What a person fills: of the hidden fields only where a marked answer starts.
const fields = () => [...form().elements].filter((one) => one.name && one.type !== "file" && (one.type !== "hidden" || one.name.endsWith("_start")));
const remember = () => {
  if (!draftKey()) return;
  const values = fields().map((one) => [one.name, isTicked(one) ? one.checked : one.value]);
  localStorage.setItem(draftKey(), JSON.stringify(values));
};
const recall = () => {
  try { return JSON.parse(localStorage.getItem(draftKey())); } catch { return null; }
};
for (const kind of ["input", "change"]) document.addEventListener(kind, (event) => {
  if (!event.target.form || event.target.form !== form()) return;
  remember();
  if (document.getElementById("status").textContent === WORDS.restored) say("");
  if (event.target === typed()) count();
  else if (kind === "change") typed()?.dispatchEvent(new Event("draft"));
});
// Who comes to a shared machine next reads nothing of it: the server has what was typed.
document.addEventListener("submit", ({ target }) => {
  if (!target.matches("[data-signs-out]")) return;
  for (const store of [localStorage, sessionStorage]) {
    Object.keys(store).filter((key) => key.startsWith("draft-")).forEach((key) => store.removeItem(key));
  }
});
// Of tabs that are wider than the screen the current one is in sight.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
});

// On a phone long texts are folded; the button shows only where something is hidden.
const foldTexts = () => document.querySelectorAll("[data-unfold]").forEach((button) => {
  const text = button.closest("section").querySelector(".text");
  if (text && !text.matches(".whole")) button.hidden = text.scrollHeight <= text.clientHeight + 1;
});
const unfold = (part) => {
  part.querySelector(".text").classList.add("whole");
  part.querySelector("[data-unfold]").hidden = true;
};
document.addEventListener("DOMContentLoaded", foldTexts);
document.addEventListener("htmx:afterSettle", foldTexts);
addEventListener("resize", foldTexts);
document.addEventListener("click", ({ target }) => { if (target.matches("[data-unfold]")) unfold(target.closest("section")); });
// Whoever goes through its words by keys sees all of them.
document.addEventListener("focusin", ({ target }) => {
  const part = target.matches(".passage, .handle") && target.closest(".read section:has([data-unfold])");
  if (part) unfold(part);
});

const count = () => {
  const box = typed(), counter = document.getElementById("counter");
  if (!box?.dataset.limit || !counter) return;
  const limit = Number(box.dataset.limit), length = Array.from(box.value).length;
  counter.textContent = WORDS.count.replace("{length}", length).replace("{limit}", limit);
  if (length === Math.ceil(limit * 0.9) || length === limit) say(counter.textContent);
};
const restore = () => {
  const box = typed(), values = draftKey() && recall();
  if (values && (!box || box.value.trim() === (box.dataset.given || "").trim())) {
    const all = fields(), has = (one) => isTicked(one) ? "checked" : "value";
    const differ = values.map(([name, value], i) => [all[i], name, value]).filter(([one, name, value]) => one?.name === name && one[has(one)] !== value);
    for (const [one, , value] of differ) one[has(one)] = value;
    if (differ.length) say(WORDS.restored);
  }
  count();
};
document.addEventListener("DOMContentLoaded", () => {
  restore();
  begin(document);
});
// On the way back to a page that it kept whole, WebKit sets forms that are not to be restored to
// their defaults, without an event and at a time of its own. So what they hold becomes the default.
window.addEventListener("pagehide", () => {
  for (const one of draftKey() ? fields() : []) {
    if (isTicked(one)) one.defaultChecked = one.checked;
    else one.defaultValue = one.value;
    for (const option of one.options ?? []) option.defaultSelected = option.selected;
  }
});
document.addEventListener("click", ({ target }) => {
  if (target.id !== "use-start") return;
  typed().focus();
  typed().select();
  document.execCommand("insertText", false, document.getElementById("start").textContent);  // undoable
});

// A slider moves with its number, which is what is sent.
const sliders = () => document.querySelectorAll("[data-number]").forEach((range) => {
  range.hidden = false;
  range.value = document.getElementById(range.dataset.number).value;
});
document.addEventListener("DOMContentLoaded", sliders);
document.addEventListener("htmx:afterSettle", sliders);
document.addEventListener("input", ({ target }) => {
  const number = target.dataset.number, range = target.id && document.querySelector(`[data-number="${CSS.escape(target.id)}"]`);
  if (number) document.getElementById(number).value = target.value;
  else if (range) range.value = target.value;
});

// Times are the reader's; the page says UTC, and keeps it as the title.
const localTimes = () => document.querySelectorAll("time[data-local]").forEach((one) => {
  const style = one.dataset.local === "time" ? {} : { dateStyle: "medium" };
  const { lang } = document.documentElement;
  one.title = one.textContent;
  // As the server writes days in charts and tables: 23 Nov 2026.
  one.textContent = new Intl.DateTimeFormat(lang === "en" ? "en-GB" : lang, { ...style, timeStyle: "short", numberingSystem: "latn" }).format(new Date(one.dateTime));
  delete one.dataset.local;
});
document.addEventListener("DOMContentLoaded", localTimes);
document.addEventListener("htmx:afterSettle", localTimes);

// What appears new is deaf for a moment: a tap or key was meant for what stood there before.
let shown, shownSince = 0;
const noteFresh = () => {
  const fresh = document.querySelector("[data-fresh]")?.dataset.fresh;
  if (fresh !== shown) shownSince = performance.now();
  shown = fresh;
};
document.addEventListener("DOMContentLoaded", noteFresh);
document.addEventListener("htmx:afterSwap", noteFresh);
for (const kind of ["click", "submit"]) document.addEventListener(kind, (event) => {
  const pressed = event.target.closest?.("button, summary, form"), part = pressed?.closest("[data-fresh]");
  if (!part || (part.dataset.fresh === shown && performance.now() - shownSince >= Number(part.dataset.deaf))) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);

// Keys. One that is held down presses no button twice: the next one has the focus by then.
document.addEventListener("keydown", (event) => {
  // In a field of one line Enter sends, as in an input; Shift and Enter break its line.
  const isLine = event.target.matches("textarea.short") && !event.shiftKey && !event.isComposing;
  const submits = event.key === "Enter" && (event.ctrlKey || event.metaKey || isLine);
  // A passage in which words are marked belongs to the form below it.
  const inside = event.target.closest("form") ?? (event.target.closest("[data-keys]") && form());
  if (event.repeat && (submits || event.key === "Enter" && !event.target.matches("textarea"))) return event.preventDefault();
  if (submits && inside) {
    event.preventDefault();
    inside.requestSubmit();
  }
  const typing = event.target.closest("input, textarea, select, [contenteditable], [data-keys]");
  if (!("keyboardMode" in document.body.dataset) || typing) return;
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const control = document.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (!control) return;
  event.preventDefault();
  if ("overlay" in control.dataset) openOverlay(control);
  else control.click();
});
