// Choosing an answer in a passage by mouse, touch or keyboard. Typing it always works too.
// Offsets are in code points, as the server counts; the server checks them again.
// Where several stretches are marked, the answer is a textarea of lines, and what was chosen enters
// it by a button of [data-marks]; a line break within a stretch is written ⏎ there.
"use strict";

(() => {
  // The cursor and the anchor, which only keys move, are indices into the words; chosen is "from,to".
  let cursor, anchor, chosen, dragged = null, isPressed = false, settled;
  const parts = () => {
    const passage = document.getElementById("passage");
    if (!passage) return null;
    const name = passage.dataset.field;
    if (passage.dataset.text === undefined) {  // a new passage, perhaps after a swap
      passage.dataset.text = passage.textContent;
      cursor = -1; anchor = null; chosen = "";
    }
    return {
      passage, text: passage.dataset.text,
      answer: document.getElementById(`id_${name}`),
      start: document.querySelector(`input[type=hidden][name="${name}_start"]`),
      line: document.getElementById("span-line"),
    };
  };
  const tools = (found) => document.querySelector(`[data-marks="${found.answer?.id}"]`);
  const points = (text, units) => Array.from(text.slice(0, units)).length;
  const units = (text, points) => Array.from(text).slice(0, points).join("").length;
  // Without the punctuation around them: "1840." is chosen as "1840". Some scripts part no words.
  // Emoji are words of their own, with all that is joined to them.
  const UNPARTED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Khmer}\p{Script=Lao}\p{Script=Myanmar}]/u;
  const EMOJI = "(?:\\p{RI}{2}|(?:\\p{Emoji_Presentation}|\\p{ExtPict}\\ufe0f)[\\ufe0f\\p{EMod}]*(?:\\u200d\\p{ExtPict}[\\ufe0f\\p{EMod}]*)*)";
  const WORD = new RegExp(`${EMOJI}+|(?!${EMOJI})[^\\s\\p{P}](?:(?:(?!${EMOJI})\\S)*(?!${EMOJI})(?:[^\\s\\p{P}]|%))?`, "gu");
  const segments = (text) => [...new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)]
    .filter((one) => one.isWordLike || new RegExp(`^${EMOJI}$`, "u").test(one.segment));
  const words = (text) => (UNPARTED.test(text)
    ? segments(text).map((one) => [one.index, one.segment.length])
    : [...text.matchAll(WORD)].map((one) => [one.index, one[0].length])).map(([from, length]) => [from, from + length]);
  // Where words stand in the text, as [from, to] in UTF-16 units: as they are written, else with any
  // white space or ⏎ for any other, as the server finds them (tasks/config/stretches.py).
  const places = (text, typed) => {
    const escaped = (piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const pieces = typed.split(/[\s\u0085⏎]+/u).filter(Boolean);
    for (const pattern of [escaped(typed), pieces.map(escaped).join("[\\s\\u0085⏎]+")]) {
      const found = pattern ? [...text.matchAll(new RegExp(`(?=(${pattern}))`, "gu"))] : [];
      if (found.length) return found.map((one) => [one.index, one.index + one[1].length]);
    }
    return [];
  };
  // A stretch with the whole of each word that it touches; null: it touches none.
  const snapped = (text, from, to) => {
    const inside = words(text).filter(([a, b]) => b > from && a < to);
    return inside.length ? [inside[0][0], inside.at(-1)[1]] : null;
  };

  // What the lines mark, as [from, to, tag]: those that are written in full.
  const marks = () => {
    const found = parts();
    if (!tools(found)) return [];
    return found.answer.value.split("\n").flatMap((line) => {
      const [, words, start, , tag] = line.trim().match(/^(.+) @(\d+)( = (.+))?$/s) ?? [];
      const at = words ? places(found.text, words).find(([from]) => points(found.text, from) === Number(start)) : null;
      return at ? [[...at, tag]] : [];
    });
  };

  // [from, to) in UTF-16 units.
  const paint = (from, to, at) => {
    const { passage, text } = parts(), marked = marks();
    const cuts = [...new Set([0, from, to, ...(at || []), ...marked.flatMap(([a, b]) => [a, b]), text.length])].filter((n) => n >= 0).sort((a, b) => a - b);
    passage.replaceChildren(...cuts.slice(0, -1).map((start, i) => {
      const end = cuts[i + 1], piece = document.createElement("span");
      piece.textContent = text.slice(start, end);
      if (start >= from && end <= to) piece.classList.add("mine");
      if (at && start >= at[0] && end <= at[1]) piece.classList.add("cursor");
      if (marked.some(([a, b]) => start >= a && end <= b)) piece.classList.add("marked");
      const last = marked.find(([, b]) => end === b);
      if (last?.[2]) piece.dataset.tag = last[2];
      return piece;
    }));
  };
  const describe = (from, to) => {
    const { text, line } = parts();
    const inside = words(text).map(([a, b], i) => [a, b, i + 1]).filter(([a, b]) => b > from && a < to);
    const values = { text: text.slice(from, to), first: inside[0]?.[2], last: inside.at(-1)?.[2] };
    const said = values.first === values.last ? line.dataset.word : line.dataset.words;
    line.textContent = values.first ? said.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole) : "";
  };
  const choose = (...stretch) => {
    const { text, answer, start } = parts();
    const found = snapped(text, ...stretch);
    if (!found) return;
    const [from, to] = found, isLine = tools(parts());  // then a button enters it
    if (!isLine) {
      answer.value = text.slice(from, to);
      fit();
    }
    if (start) start.value = points(text, from);
    chosen = String([from, to]);
    paint(from, to);
    describe(from, to);
    if (!isLine) answer.dispatchEvent(new Event("change", { bubbles: true }));  // drafts keep it
  };
  // What is typed, submitted or edited is another answer: no tap goes on from the former one.
  const forget = () => { clearTimeout(settled); anchor = dragged = null; chosen = ""; };
  // Mark and line tell what will be stored; from below 0: the passage does not say where it stands.
  const point = (from, to) => {
    paint(from, to);
    if (from < 0) parts().line.textContent = "";
    else describe(from, to);
    fit();
  };
  // The field of one stretch shows all lines of its answer.
  const fit = () => {
    const { answer } = parts();
    if (!tools(parts())) answer.rows = Math.min(6, answer.value.split("\n").length);
  };
  // An answer that a draft brought back, or that is edited, is marked again.
  const remark = () => {
    const found = parts();
    if (!found?.answer) return;
    forget();
    document.getElementById("span-hint").hidden = false;
    if (tools(found)) tools(found).hidden = false;
    const { text, answer, start } = found, from = start?.value && answer.value ? units(text, Number(start.value)) : -1;
    point(...(places(text, answer.value).find(([a]) => a === from) ?? [-1, -1]));
  };
  document.addEventListener("DOMContentLoaded", remark);
  document.addEventListener("htmx:afterSettle", ({ target }) => { if (target.id === "work" || target.id === "form") remark(); });
  document.addEventListener("submit", ({ target }) => { if (target.id === "write-form") forget(); });

  // Where the browser's own selection lies in the passage; from === to: a place without length.
  const selected = () => {
    const { passage } = parts(), selection = document.getSelection();
    if (!selection.rangeCount) return null;
    const range = selection.getRangeAt(0);
    if (!passage.contains(range.startContainer) || !passage.contains(range.endContainer)) return null;
    const before = document.createRange();
    before.selectNodeContents(passage);
    before.setEnd(range.startContainer, range.startOffset);
    const from = before.toString().length;
    return [from, from + range.toString().length];
  };
  document.addEventListener("selectionchange", () => {
    clearTimeout(settled);
    const found = parts() && selected();
    if (!found || found[0] === found[1] || String(found) === chosen) return;
    dragged = found;
    describe(...(snapped(parts().text, ...found) ?? found));
    if (!isPressed) settled = setTimeout(finish, 500);
  });
  // The selection stays, so that it can be copied.
  const finish = () => {
    if (!dragged || !parts()) return;
    const isLive = document.getSelection().toString();
    choose(...dragged);
    dragged = anchor = null;
    const mine = parts().passage.querySelector(".mine");
    if (mine && isLive) document.getSelection().selectAllChildren(mine);
  };
  // After a long press the system moves the ends of the selection, and no page hears of the finger:
  // a selection that rests without one is a choice.
  for (const type of ["pointerdown", "pointerup", "pointercancel"]) {
    document.addEventListener(type, () => {
      isPressed = type === "pointerdown";
      if (type === "pointerup") setTimeout(finish);
    });
  }
  document.addEventListener("touchend", () => setTimeout(finish));

  // A tap chooses its word; beside what is chosen it adds the word to it.
  document.addEventListener("click", (event) => {
    const found = parts(), place = found?.passage.contains(event.target) && selected();
    if (!place || place[0] !== place[1]) return;
    const all = words(found.text), tapped = all.findIndex(([from, to]) => place[0] >= from && place[0] <= to);
    if (tapped < 0) return;
    const [from, to] = (chosen || "-1,-1").split(",").map(Number);
    const mine = all.flatMap(([a, b], i) => b > from && a < to ? [i] : []);
    const isBeside = tapped === mine[0] - 1 || tapped === mine.at(-1) + 1;
    const stretch = isBeside ? [...mine, tapped].sort((a, b) => a - b) : [tapped];
    anchor = null;
    cursor = tapped;
    choose(all[stretch[0]][0], all[stretch.at(-1)][1]);
  });

  // The same button again takes the line away.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-marks] button"), found = button && parts();
    if (!found || !chosen) return;
    const [from, to] = chosen.split(",").map(Number);
    const line = `${found.text.slice(from, to).replaceAll("\n", "⏎")} @${points(found.text, from)}${button.value && ` = ${button.value}`}`;
    const lines = found.answer.value.split("\n").filter((one) => one.trim());
    found.answer.value = (lines.includes(line) ? lines.filter((one) => one !== line) : [...lines, line]).join("\n");
    found.answer.dispatchEvent(new Event("change", { bubbles: true }));  // drafts keep it
    paint(from, to);
  });

  document.addEventListener("keydown", (event) => {
    const found = parts();
    if (!found || event.target !== found.passage) return;
    const all = words(found.text), step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      anchor = event.shiftKey ? anchor ?? Math.max(0, cursor) : null;
      cursor = Math.max(0, Math.min(all.length - 1, cursor + step));
    } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
      cursor = Math.max(0, cursor);
      const other = anchor ?? cursor;
      choose(all[Math.min(cursor, other)][0], all[Math.max(cursor, other)][1]);
      event.preventDefault();
      return;
    } else if (event.key === "Escape") {
      cursor = -1; anchor = null; chosen = "";
      if (!tools(found)) found.answer.value = "";
      fit();
      if (found.start) found.start.value = "";
      found.line.textContent = "";
    } else return;
    event.preventDefault();
    const low = Math.min(cursor, anchor ?? cursor), high = Math.max(cursor, anchor ?? cursor);
    if (anchor === null) paint(-1, -1, all[cursor] ?? null);
    else { paint(all[low][0], all[high][1], all[cursor]); describe(all[low][0], all[high][1]); }
  });

  // Typing makes an earlier choice void. Words that stand in the passage once are marked as the
  // server will find them; of others it asks the place.
  document.addEventListener("input", (event) => {
    const found = parts();
    if (!found || event.target !== found.answer) return;
    forget();
    if (found.start) found.start.value = "";
    const all = tools(found) ? [] : places(found.text, found.answer.value.trim());
    point(...(all.length === 1 ? all[0] : [-1, -1]));
  });
})();
