// The words of a passage, and where typed words stand in it. Stretches are [from, to] in UTF-16 units;
// the server counts code points.
"use strict";

const SpanText = (() => {
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
  // Where words stand in the text: as they are written, else composed, else with any white space or ⏎
  // for any other, as the server finds them (tasks/config/stretches.py).
  const places = (text, typed) => {
    const escaped = (piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const forms = [...new Set([typed, typed.normalize("NFC")])];
    const spaced = (form) => form.split(/[\s\u0085⏎]+/u).filter(Boolean).map(escaped).join("[\\s\\u0085⏎]+");
    for (const pattern of [...forms.map(escaped), ...forms.map(spaced)]) {
      const found = pattern ? [...text.matchAll(new RegExp(`(?=(${pattern}))`, "gu"))] : [];
      if (found.length) return found.map((one) => [one.index, one.index + one[1].length]);
    }
    return [];
  };
  return { points, units, words, places };
})();
