// A file is sent in pieces before the form, so that a broken connection goes on where it was, also
// after the page was closed. Without this script the form sends the file itself.
"use strict";

// A sentence of the page, with values in the places of their names.
const sentence = (name, values = {}) => document.getElementById("submit-form").dataset[name]
  .replace(/\{(\w+)\}/g, (_, key) => values[key]);
const known = (file) => `upload:${file.name}:${file.size}:${file.lastModified}`;
const asPercent = (share) => new Intl.NumberFormat(document.documentElement.lang, { style: "percent" }).format(share);
const pause = (seconds) => new Promise((done) => { setTimeout(done, seconds * 1000); });
const token = () => document.cookie.match(/csrftoken=(\w+)/)?.[1]
  || document.querySelector("[name=csrfmiddlewaretoken]").value;

// The answer of the API, with its status.
const ask = async (url, options = {}, type = null) => {
  const headers = { "X-CSRFToken": token(), Accept: "application/json", ...type && { "Content-Type": type } };
  const answer = await fetch(url, { ...options, headers });
  const isJson = answer.headers.get("Content-Type")?.includes("json");
  const body = isJson ? await answer.json() : {};
  return { status: answer.status, ...body };
};

// The upload that this file belongs to: the one that was begun before, if it is still there.
const beginUpload = async (uploads, file) => {
  const id = localStorage.getItem(known(file));
  const before = id ? await ask(`${uploads}${id}/`) : null;
  if (before?.status === 200) return before;
  const body = JSON.stringify({ file_name: file.name, size: file.size });
  const made = await ask(uploads, { method: "POST", body }, "application/json");
  if (made.status !== 201) throw new Error(made.error?.message || sentence("refused", { status: made.status }));
  localStorage.setItem(known(file), made.id);
  return made;
};

// Sends what is missing. A piece that did not come through is sent again, for a while.
const send = async (uploads, file, tell) => {
  const { id, received, piece_bytes: piece } = await beginUpload(uploads, file);
  const url = `${uploads}${id}/`;
  for (let tries = 0, offset = received; offset < file.size;) {
    tell(offset);
    try {
      const body = file.slice(offset, offset + piece);
      let answer = await ask(`${url}?offset=${offset}`, { method: "PUT", body }, "application/octet-stream");
      if (answer.status === 409) answer = await ask(url);  // another piece is next, as from another tab
      if (answer.status !== 200 || answer.received === offset) throw new Error(answer.error?.message || sentence("failed", { status: answer.status }));
      offset = answer.received;
      tries = 0;
    } catch (error) {
      tries += 1;
      if (tries > 5) throw error;
      await pause(2 ** tries / 2);
    }
  }
  return id;
};

document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("submit-form"), input = form?.querySelector("[type=file]");
  const state = document.getElementById("upload-state");
  if (!input) return;
  let isBusy = false, tenth = -1;
  const tell = (file) => (offset) => {
    const percent = Math.floor(100 * offset / file.size);
    state.textContent = sentence("here", { percent: asPercent(percent / 100), file: file.name });
    if (Math.floor(percent / 10) > tenth) say(sentence("share", { percent: asPercent(percent / 100) }));  // not each piece is said
    tenth = Math.floor(percent / 10);
  };
  form.addEventListener("submit", async (event) => {
    const [file] = input.files;
    if (!file) return;
    event.preventDefault();
    if (isBusy) return;
    isBusy = true;
    form.setAttribute("aria-busy", "true");
    try {
      form.elements.upload_id.value = await send(form.dataset.uploads, file, tell(file));
      localStorage.removeItem(known(file));
      input.value = "";  // it is there already
      form.submit();
    } catch (error) {
      state.textContent = sentence("reason", { reason: error.message });
      say(sentence("broken"));
    }
    form.removeAttribute("aria-busy");
    isBusy = false;
  });
});
