// Choosing an answer in a passage by mouse, touch or keyboard. Typing it always works too.
// What is marked, what the line says and what the field holds are one state, `mark`, which `setMark`
// alone changes; offsets are sent in code points, and the server checks them again.
// Where several stretches are marked, the answer is a textarea of lines, and what was chosen enters
// it by a button of [data-marks]; a line break within a stretch is written ⏎ there.
"use strict";

const Span = (() => {
  const { points, units, places } = SpanText;
  // mark: [from, to] or null; isChosen: in the passage, not by typing, so that a tap beside it adds.
  // cursor: a word, drawn while keys move it. anchor: the word from which Shift and arrows choose.
  // selection: one of the browser's own that no finger has let go yet.
  let mark = null, isChosen = false, cursor = -1, isMoving = false, anchor = null, selection = null, isPressed = false, settled;
  const parts = () => {
    const passage = document.getElementById("passage");
    if (!passage) return null;
    const name = passage.dataset.field, answer = document.getElementById(`id_${name}`);
    if (passage.dataset.text === undefined) {  // a new passage, perhaps after a swap
      passage.dataset.text = passage.textContent;
      cursor = -1;
      forget();
    }
    return {
      passage, name, answer, text: passage.dataset.text,
      line: document.getElementById("span-line"),
      tools: document.querySelector(`[data-marks="${answer?.id}"]`),
    };
  };
  const words = () => SpanText.words(parts().text);
  const touched = ([from, to]) => words().flatMap(([a, b], i) => b > from && a < to ? [i] : []);
  // Another answer was typed, submitted or is edited: nothing goes on from the former one.
  const forget = () => { clearTimeout(settled); mark = anchor = selection = null; isChosen = isMoving = false; };

  // Where the answer begins, as the form sends it; once the server asked which place is meant, the
  // question is answered by a mark and void by typing.
  const starts = ({ name }) => document.querySelectorAll(`#write-form [name="${name}_start"]`);
  const startOf = (found) => [...starts(found)].find((one) => one.type === "hidden" || one.checked)?.value ?? "";
  const setStart = (found, value) => {
    let [first] = starts(found);
    if (first?.type === "radio") {
      const hidden = Object.assign(document.createElement("input"), { type: "hidden", name: first.name });
      document.getElementById("write-form").append(hidden);
      (first.closest("fieldset") ?? first.parentElement).remove();
      first = hidden;
    }
    if (first) first.value = value;
  };

  // What the lines mark, as [from, to, tag]: those that are written in full.
  const marked = ({ tools, answer, text }) => (!tools ? [] : answer.value.split("\n").flatMap((line) => {
    const [, words, start, , tag] = line.trim().match(/^(.+) @(\d+)( = (.+))?$/s) ?? [];
    const at = words ? places(text, words).find(([from]) => points(text, from) === Number(start)) : null;
    return at ? [[...at, tag]] : [];
  }));
  const paint = (found) => {
    const { passage, text } = found, lines = marked(found), at = isMoving ? words()[cursor] : null;
    const isIn = (stretch, start, end) => stretch && start >= stretch[0] && end <= stretch[1];
    const cuts = [...new Set([0, ...(mark ?? []), ...(at ?? []), ...lines.flatMap(([a, b]) => [a, b]), text.length])].sort((a, b) => a - b);
    passage.replaceChildren(...cuts.slice(0, -1).map((start, i) => {
      const end = cuts[i + 1], piece = document.createElement("span");
      piece.textContent = text.slice(start, end);
      piece.classList.toggle("mine", Boolean(isIn(mark, start, end)));
      piece.classList.toggle("cursor", Boolean(isIn(at, start, end)));
      piece.classList.toggle("marked", lines.some((line) => isIn(line, start, end)));
      const last = lines.find(([, b]) => end === b);
      if (last?.[2]) piece.dataset.tag = last[2];
      return piece;
    }));
  };
  const describe = ({ text, line }) => {
    const inside = mark ? touched(mark) : [];
    const values = { text: mark && text.slice(...mark), first: inside[0] + 1, last: inside.at(-1) + 1 };
    const said = inside.length > 1 ? line.dataset.words : line.dataset.word;
    line.textContent = inside.length ? said.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole) : "";
  };
  // Mark, line and ends tell what will be stored; the field of one stretch shows all its lines.
  const show = () => {
    const found = parts();
    paint(found);
    describe(found);
    if (!found.tools) found.answer.rows = Math.min(6, found.answer.value.split("\n").length);
    document.dispatchEvent(new Event("span:shown"));
  };
  // A stretch, or null for none, that was chosen in the passage.
  const setMark = (stretch) => {
    const found = parts();
    mark = stretch;
    isChosen = Boolean(mark);
    if (!found.tools) {  // else a button enters it
      found.answer.value = mark ? found.text.slice(...mark) : "";
      setStart(found, mark ? points(found.text, mark[0]) : "");
    }
    show();
    if (!found.tools) found.answer.dispatchEvent(new Event("change", { bubbles: true }));  // drafts keep it
  };
  const chooseWords = (one, other) => setMark([words()[Math.min(one, other)][0], words()[Math.max(one, other)][1]]);
  // The mark of what the field holds: where the form says that it begins, else where the passage has
  // it once; of other words the server asks the place.
  const readField = () => {
    const found = parts(), { text, answer } = found, start = startOf(found);
    const all = found.tools ? [] : places(text, answer.value.trim());
    const at = start && all.find(([from]) => from === units(text, Number(start)));
    mark = at || (all.length === 1 ? all[0] : null);
    show();
  };
  // An answer that a draft brought back, or that is edited, is marked again.
  const begin = () => {
    const found = parts();
    if (!found?.answer) return;
    forget();
    document.getElementById("span-hint").hidden = false;
    if (found.tools) found.tools.hidden = false;
    readField();
  };
  document.addEventListener("DOMContentLoaded", begin);
  document.addEventListener("htmx:afterSettle", ({ target }) => { if (target.id === "work" || target.id === "form") begin(); });
  // Before htmx reads the form: what is selected at that moment is the answer.
  document.addEventListener("submit", ({ target }) => {
    if (target.id !== "write-form" || !parts()?.answer) return;
    finish();
    clearTimeout(settled);
    anchor = null;
    isChosen = false;
  }, true);

  // Where the browser's own selection lies in the passage; from === to: a place without length.
  const selected = () => {
    const { passage } = parts(), chosen = document.getSelection();
    if (!chosen.rangeCount) return null;
    const range = chosen.getRangeAt(0);
    if (!passage.contains(range.startContainer) || !passage.contains(range.endContainer)) return null;
    const before = document.createRange();
    before.selectNodeContents(passage);
    before.setEnd(range.startContainer, range.startOffset);
    const from = before.toString().length;
    return [from, from + range.toString().length];
  };
  document.addEventListener("selectionchange", () => {
    clearTimeout(settled);
    const stretch = parts()?.answer && selected();
    if (!stretch || stretch[0] === stretch[1] || String(stretch) === String(mark)) return;
    selection = stretch;
    if (!isPressed) settled = setTimeout(finish, 500);
  });
  // Whole words are chosen. The selection stays, so that it can be copied.
  const finish = () => {
    if (!selection || !parts()?.answer) return;
    const inside = touched(selection), isLive = document.getSelection().toString();
    selection = anchor = null;
    isMoving = false;
    if (!inside.length) return;
    chooseWords(inside[0], inside.at(-1));
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
  const tap = (word) => {
    const mine = isChosen ? touched(mark) : [];
    const isBeside = word === mine[0] - 1 || word === mine.at(-1) + 1;
    const all = isBeside ? [...mine, word].sort((a, b) => a - b) : [word];
    anchor = null;
    isMoving = false;
    cursor = word;
    chooseWords(all[0], all.at(-1));
  };
  document.addEventListener("click", (event) => {
    const found = parts(), place = found?.answer && found.passage.contains(event.target) && selected();
    if (!place || place[0] !== place[1]) return;
    const tapped = words().findIndex(([from, to]) => place[0] >= from && place[0] <= to);
    if (tapped >= 0) tap(tapped);
  });

  // The same button again takes the line away.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-marks] button"), found = button && parts();
    if (!found || !mark) return;
    const { text, answer } = found;
    const line = `${text.slice(...mark).replaceAll("\n", "⏎")} @${points(text, mark[0])}${button.value && ` = ${button.value}`}`;
    const lines = answer.value.split("\n").filter((one) => one.trim());
    answer.value = (lines.includes(line) ? lines.filter((one) => one !== line) : [...lines, line]).join("\n");
    show();
    answer.dispatchEvent(new Event("change", { bubbles: true }));  // drafts keep it
  });

  // Arrows move a cursor, as the text runs; with Shift they choose from where it was, or lengthen
  // and shorten the mark when it was made without them.
  const stepOf = (key) => {
    const isRtl = getComputedStyle(parts().passage).direction === "rtl";
    return { ArrowRight: isRtl ? -1 : 1, ArrowLeft: isRtl ? 1 : -1, ArrowDown: 1, ArrowUp: -1 }[key];
  };
  const move = (step, isChoosing) => {
    if (isChoosing && anchor === null) {
      const mine = mark && !isMoving ? touched(mark) : [cursor];
      [anchor, cursor] = step > 0 ? [Math.max(0, mine[0]), mine.at(-1)] : [Math.max(0, mine.at(-1)), mine[0]];
    } else if (!isChoosing) anchor = null;
    cursor = Math.max(0, Math.min(words().length - 1, cursor + step));
    isMoving = true;
    if (isChoosing) chooseWords(anchor, cursor);
    else show();
  };
  document.addEventListener("keydown", (event) => {
    const found = parts();
    if (!found?.answer || event.target !== found.passage || !words().length) return;
    const step = stepOf(event.key);
    if (step) move(step, event.shiftKey);
    else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
      cursor = Math.max(0, cursor);
      isMoving = false;
      chooseWords(anchor ?? cursor, cursor);
    } else if (event.key === "Escape") {
      cursor = -1;
      forget();
      setMark(null);
    } else return;
    event.preventDefault();
  });

  document.addEventListener("input", (event) => {
    const found = parts();
    if (!found || event.target !== found.answer) return;
    forget();
    setStart(found, "");
    readField();
  });
  // The server asked which of several places is meant.
  document.addEventListener("change", (event) => {
    const found = parts();
    if (found?.answer && event.target.type === "radio" && event.target.name === `${found.name}_start`) readField();
  });

  return { parts, words, touched, chooseWords, tap, stepOf, mark: () => mark };
})();
