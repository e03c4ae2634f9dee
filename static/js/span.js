// Choosing an answer in a passage by mouse, touch or keyboard. Typing it always works too.
// Offsets are in code points, as the server counts; the server checks them again.
"use strict";

(() => {
  const parts = () => {
    const passage = document.getElementById("passage");
    if (!passage) return null;
    const name = passage.dataset.field;
    return {
      passage, text: passage.dataset.text ?? (passage.dataset.text = passage.textContent),
      answer: document.getElementById(`id_${name}`),
      start: document.querySelector(`input[type=hidden][name="${name}_start"]`),
      line: document.getElementById("span-line"),
    };
  };
  const points = (text, units) => Array.from(text.slice(0, units)).length;
  const words = (text) => [...text.matchAll(/\S+/g)].map((m) => [m.index, m.index + m[0].length]);

  // [from, to) in UTF-16 units; the cursor is an index into the words.
  let cursor = 0, anchor = null;

  const paint = (from, to, at) => {
    const { passage, text } = parts();
    const cuts = [...new Set([0, from, to, ...(at || []), text.length])].filter((n) => n >= 0).sort((a, b) => a - b);
    passage.replaceChildren(...cuts.slice(0, -1).map((start, i) => {
      const end = cuts[i + 1], piece = document.createElement("span");
      piece.textContent = text.slice(start, end);
      if (start >= from && end <= to) piece.classList.add("mine");
      if (at && start >= at[0] && end <= at[1]) piece.classList.add("cursor");
      return piece;
    }));
  };
  const describe = (from, to) => {
    const { text, line } = parts();
    const inside = words(text).map(([a, b], i) => [a, b, i + 1]).filter(([a, b]) => b > from && a < to);
    const last = inside.at(-1)?.[2], first = inside[0]?.[2];
    line.textContent = first ? `Answer: “${text.slice(from, to)}” (${first === last ? `word ${first}` : `words ${first} to ${last}`})` : "";
  };
  const choose = (from, to) => {
    const { text, answer, start } = parts();
    const cut = text.slice(from, to);
    from += cut.length - cut.trimStart().length;
    to = from + cut.trim().length;
    if (from >= to) return;
    answer.value = text.slice(from, to);
    if (start) start.value = points(text, from);
    paint(from, to);
    describe(from, to);
  };

  document.addEventListener("selectionchange", () => {
    const found = parts(), selection = document.getSelection();
    if (!found || selection.isCollapsed || !selection.rangeCount) return;
    const range = selection.getRangeAt(0);
    if (!found.passage.contains(range.startContainer) || !found.passage.contains(range.endContainer)) return;
    const before = document.createRange();
    before.selectNodeContents(found.passage);
    before.setEnd(range.startContainer, range.startOffset);
    const from = before.toString().length;
    describe(from, from + range.toString().length);
    found.passage.dataset.picked = `${from},${from + range.toString().length}`;
  });
  const finish = () => {
    const found = parts();
    if (!found?.passage.dataset.picked) return;
    const [from, to] = found.passage.dataset.picked.split(",").map(Number);
    delete found.passage.dataset.picked;
    choose(from, to);
  };
  document.addEventListener("pointerup", () => setTimeout(finish));
  document.addEventListener("touchend", () => setTimeout(finish));

  document.addEventListener("keydown", (event) => {
    const found = parts();
    if (!found || event.target !== found.passage) return;
    const all = words(found.text), step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      cursor = Math.max(0, Math.min(all.length - 1, cursor + step));
      if (!event.shiftKey) anchor = null;
      else if (anchor === null) anchor = cursor - step;
    } else if (event.key === "Enter") {
      const other = anchor ?? cursor;
      choose(all[Math.min(cursor, other)][0], all[Math.max(cursor, other)][1]);
      event.preventDefault();
      return;
    } else if (event.key === "Escape") {
      anchor = null;
      found.answer.value = "";
      if (found.start) found.start.value = "";
      found.line.textContent = "";
    } else return;
    event.preventDefault();
    const low = Math.min(cursor, anchor ?? cursor), high = Math.max(cursor, anchor ?? cursor);
    if (anchor === null) paint(-1, -1, all[cursor]);
    else { paint(all[low][0], all[high][1], all[cursor]); describe(all[low][0], all[high][1]); }
  });

  // Typing the answer makes an earlier choice void: the server finds the place, or asks.
  document.addEventListener("input", (event) => {
    const found = parts();
    if (found && event.target === found.answer && found.start) found.start.value = "";
  });
})();
