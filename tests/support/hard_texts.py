"""Texts that tools break: line ends, forms of letters, scripts, signs of formats."""

HARD = [
    "one\r\ntwo\rthree\n\r\nfour",
    "cafe\u0301 A\u030angstro\u0308m \u212b",  # composed they are shorter
    "\u1112\u1161\u11ab\u1100\u1173\u11af",  # Hangul by its parts
    "\u05e9\u05bc\u05c1 \u05e9\u05c1\u05bc",  # marks in two orders
    "\u2f806 \uf900",  # ideographs that have another code in NFC
    "a\u2028b\u2029c\x85d",  # no line ends of a file
    "non\u00a0breaking\u3000wide\u200bnone",
    "👩\u200d🚒 👨🏻\u200d👩🏽\u200d👧 🇩🇪 1\ufe0f\u20e3 ❤\ufe0f",
    "סוף \u202eevil\u202c מילה (a) 12",
    "السوق مفتوح، \u200fنعم",
    "हिन्दी में क्\u200dष",
    "กินข้าวแล้ว ที่",
    "我住在北京市。「是」",
    "ﬁn ½ Ⅳ x² ＡＢＣ",
    "İstanbul ı I i\u0307",
    "ΟΔΟΣ ς",
    "Việt Nam ngh\u0069\u0303\u0323a",
    "𝒜𝓁𝓁 💩end \U0002070e",
    "x" + "\u0301\u0316" * 40,
    'He said "no", then; a\tb | c',
    "=1+1",
    "@user -5 +6",
    "<b>&amp;</b> <script>alert(1)</script>",
    "\\n \\u00e9 {a} %s ${b} {{ c }}",
    "in\ufeffside ⏎ #1 100%",
    "'tis “so” …",
]
