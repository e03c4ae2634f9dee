// The handles at both ends of what is marked in a passage: drag them, or move them by arrows.
// The first stands above its line and the last below it, so that they never cover each other or the
// mark; a tap on one that is not dragged belongs to the word beneath it.
"use strict";

(() => {
  const handles = () => [...document.querySelectorAll("[data-end]")];
  const frame = () => handles()[0].parentElement.getBoundingClientRect();
  // Boxes of a stretch of the passage, one for each of its lines, within the frame.
  const boxes = (from, to) => {
    const range = document.createRange(), { passage } = Span.parts(), { left, top } = frame();
    const walk = document.createTreeWalker(passage, NodeFilter.SHOW_TEXT);
    let seen = 0, isBegun = false;
    for (let node; (node = walk.nextNode()); seen += node.length) {
      if (!isBegun && from < seen + node.length) { range.setStart(node, from - seen); isBegun = true; }
      if (to <= seen + node.length) { range.setEnd(node, to - seen); break; }
    }
    return [...range.getClientRects()].filter((box) => box.width).map((box) => (
      { left: box.left - left, right: box.right - left, top: box.top - top, bottom: box.bottom - top }));
  };
  // Text of the other direction may stand within a passage: its own boxes say how it runs.
  const isRtl = ([from, to], word) => {
    const first = boxes(from, from + 1)[0], last = boxes(to - 1, to)[0];
    if (!first || !last || word.length > 1 || first.left === last.left) return getComputedStyle(Span.parts().passage).direction === "rtl";
    return last.left < first.left;
  };
  const place = (handle, mark) => {
    const all = Span.touched(mark), isFirst = handle.dataset.end === "first", index = isFirst ? all[0] : all.at(-1);
    const word = Span.words()[index], lines = boxes(...word), box = isFirst ? lines[0] : lines.at(-1);
    if (!box) return false;
    handle.hidden = false;
    const x = isFirst === isRtl(word, lines) ? box.right : box.left, size = handle.offsetWidth;
    const left = Math.max(0, Math.min(x - size / 2, frame().width - size));
    handle.style.left = `${left}px`;
    handle.style.top = `${isFirst ? box.top - size : box.bottom}px`;
    handle.style.setProperty("--knob", `${x - left}px`);
    handle.setAttribute("aria-valuemax", Span.words().length);
    handle.setAttribute("aria-valuenow", index + 1);
    handle.setAttribute("aria-valuetext", Span.parts().text.slice(...word));
    return true;
  };
  const showHandles = () => {
    const mark = Span.parts()?.answer && Span.mark();
    for (const handle of handles()) handle.hidden = !(mark && Span.touched(mark).length && place(handle, mark));
  };
  document.addEventListener("span:shown", showHandles);
  window.addEventListener("resize", showHandles);
  document.fonts.ready.then(showHandles);

  const moveTo = (handle, word) => {
    const all = Span.touched(Span.mark());
    if (handle.dataset.end === "first") Span.chooseWords(Math.min(word, all.at(-1)), all.at(-1));
    else Span.chooseWords(all[0], Math.max(word, all[0]));
  };

  // The word nearest to a place: of the nearest line, the nearest in it.
  const wordAt = (drawn, x, y) => {
    const away = (from, to, at) => Math.max(from - at, 0, at - to);
    const near = drawn.map((one) => ({ ...one, dx: away(one.left, one.right, x), dy: away(one.top, one.bottom, y) }));
    return near.sort((a, b) => a.dy - b.dy || a.dx - b.dx)[0];
  };
  let drag = null;
  document.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest("[data-end]");
    if (!handle || event.button) return;
    event.preventDefault();  // nothing is selected by it
    handle.focus({ preventScroll: true });
    handle.setPointerCapture(event.pointerId);
    const { left, top } = frame(), all = Span.words().flatMap((word, index) => boxes(...word).map((box) => ({ ...box, index })));
    const mine = Span.touched(Span.mark()), isFirst = handle.dataset.end === "first";
    const held = all.filter(({ index }) => index === (isFirst ? mine[0] : mine.at(-1))), box = isFirst ? held[0] : held.at(-1);
    // The finger holds the knob; what it points at is the line beside that.
    const dy = (box.top + box.bottom) / 2 - (event.clientY - top);
    drag = { handle, all, dy, x: event.clientX, y: event.clientY, at: [event.clientX - left, event.clientY - top], isMoved: false };
  });
  document.addEventListener("pointermove", (event) => {
    if (!drag) return;
    drag.isMoved ||= Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 4;
    if (!drag.isMoved) return;
    const { left, top } = frame();
    moveTo(drag.handle, wordAt(drag.all, event.clientX - left, event.clientY - top + drag.dy).index);
  });
  for (const type of ["pointerup", "pointercancel"]) document.addEventListener(type, () => {
    const word = drag && !drag.isMoved && type === "pointerup" && wordAt(drag.all, ...drag.at);
    drag = null;
    if (word && word.dx === 0 && word.dy === 0) Span.tap(word.index);
  });

  document.addEventListener("keydown", (event) => {
    const handle = event.target.closest("[data-end]"), mark = handle && Span.mark(), step = mark && Span.stepOf(event.key);
    if (!step) return;
    event.preventDefault();
    const all = Span.touched(mark), at = (handle.dataset.end === "first" ? all[0] : all.at(-1)) + step;
    moveTo(handle, Math.max(0, Math.min(Span.words().length - 1, at)));
  });
})();
