"""Write the example sets of the communities that come ready: `python scripts/community_sets.py`.

All texts are ours: written by hand here, or made of the words below by chance of a fixed seed.
"""

import json
import random
from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

READY = Path(__file__).parents[1] / "dynabench" / "communities" / "ready"
Rows = Sequence[dict[str, Any]]
LANGUAGES = ("en", "de", "fr", "es")
SENTENCES = (
    ("The train leaves at seven in the morning.",
     "Der Zug fährt um sieben Uhr morgens ab.",
     "Le train part à sept heures du matin.",
     "El tren sale a las siete de la mañana."),
    ("My grandmother grows tomatoes behind the house.",
     "Meine Großmutter zieht hinter dem Haus Tomaten.",
     "Ma grand-mère cultive des tomates derrière la maison.",
     "Mi abuela cultiva tomates detrás de la casa."),
    ("We forgot the umbrella, and then it began to rain.",
     "Wir haben den Regenschirm vergessen, und dann fing es an zu regnen.",
     "Nous avons oublié le parapluie, puis il s'est mis à pleuvoir.",
     "Olvidamos el paraguas y entonces empezó a llover."),
    ("The museum is closed on Mondays.",
     "Das Museum ist montags geschlossen.",
     "Le musée est fermé le lundi.",
     "El museo está cerrado los lunes."),
    ("Could you speak a little more slowly?",
     "Könnten Sie etwas langsamer sprechen?",
     "Pourriez-vous parler un peu plus lentement ?",
     "¿Podría hablar un poco más despacio?"),
    ("The bridge was built two hundred years ago.",
     "Die Brücke wurde vor zweihundert Jahren gebaut.",
     "Le pont a été construit il y a deux cents ans.",
     "El puente se construyó hace doscientos años."),
    ("He lost his keys and had to wait outside.",
     "Er hat seine Schlüssel verloren und musste draußen warten.",
     "Il a perdu ses clés et a dû attendre dehors.",
     "Perdió sus llaves y tuvo que esperar fuera."),
    ("The water in the lake is still too cold for swimming.",
     "Das Wasser im See ist noch zu kalt zum Schwimmen.",
     "L'eau du lac est encore trop froide pour nager.",
     "El agua del lago todavía está demasiado fría para nadar."),
    ("Nobody knew who had written the letter.",
     "Niemand wusste, wer den Brief geschrieben hatte.",
     "Personne ne savait qui avait écrit la lettre.",
     "Nadie sabía quién había escrito la carta."),
    ("If the shop has no bread, buy some apples.",
     "Wenn der Laden kein Brot hat, kauf ein paar Äpfel.",
     "Si le magasin n'a pas de pain, achète des pommes.",
     "Si la tienda no tiene pan, compra unas manzanas."),
)  # fmt: skip
NOUNS = ("farmer", "teacher", "pilot", "baker", "painter", "doctor", "singer", "sailor")
VERBS = (("sings", "sing"), ("sleeps", "sleep"), ("waits", "wait"), ("laughs", "laugh"))
WOMEN, MEN = ("Anna", "Mary", "Nora", "Clara"), ("Paul", "Omar", "Peter", "Hugo")
THINGS = ("book", "chair", "lamp", "spoon", "ticket", "window")
PAST = (("eaten", "ate"), ("written", "wrote"), ("driven", "drove"), ("chosen", "chose"))
PLACES = ("kitchen", "garden", "school", "station", "library", "market")
MEANINGS = (
    ("dog", "an animal that barks"), ("cat", "an animal that purrs"),
    ("cow", "an animal that gives milk"), ("bee", "an insect that makes honey"),
    ("knife", "a tool for cutting"), ("hammer", "a tool for driving nails"),
    ("broom", "a tool for sweeping"), ("needle", "a tool for sewing"),
    ("winter", "the coldest season"), ("summer", "the warmest season"),
    ("morning", "the first part of the day"), ("night", "the time when it is dark"),
    ("baker", "somebody who makes bread"), ("pilot", "somebody who flies planes"),
    ("teacher", "somebody who gives lessons"), ("tailor", "somebody who makes clothes"),
    ("river", "water that flows to the sea"), ("island", "land with water all around"),
    ("desert", "land where it hardly rains"), ("forest", "land that is full of trees"),
    ("kitchen", "a room for cooking"), ("bedroom", "a room for sleeping"),
    ("cellar", "a room below the house"), ("attic", "a room below the roof"),
    ("shoe", "something worn on the foot"), ("glove", "something worn on the hand"),
    ("hat", "something worn on the head"), ("scarf", "something worn around the neck"),
    ("clock", "something that shows the time"), ("map", "something that shows the way"),
    ("mirror", "something that shows your face"), ("scale", "something that shows a weight"),
)  # fmt: skip
GOOD = ("delicious", "friendly", "quick", "spotless", "charming", "generous", "wonderful", "fresh")
BAD = ("tasteless", "rude", "slow", "dirty", "noisy", "overpriced", "dreadful", "stale")
SUBJECTS = ("The soup", "The waiter", "The room", "The service", "The breakfast", "The view")
ENDS = ("as always", "to my surprise", "on both days", "from start to end", "this time", "again")
OFF_TOPIC = ("The bus stops here.", "It rained on Monday.", "My cousin plays chess.")


def translations() -> Iterator[dict[str, Any]]:
    """Each sentence between each two languages."""
    for number, texts in enumerate(SENTENCES):
        for source, target in permutations(range(len(LANGUAGES)), 2):
            pair = f"{LANGUAGES[source]}-{LANGUAGES[target]}"
            uid = f"{pair}-{number}"
            yield {
                "uid": uid, "pair": pair, "source": texts[source], "translation": texts[target]
            }  # fmt: skip


def grammar(chance: random.Random) -> Iterator[tuple[str, str, str]]:
    """(phenomenon, sentence, the same with one fault)."""
    for one, other in permutations(NOUNS, 2):
        right, wrong = chance.choice(VERBS)
        yield (
            "agreement",
            f"The {one} near the {other}s {right}.",
            f"The {one} near the {other}s {wrong}.",
        )
    for names, own, others in ((WOMEN, "herself", "himself"), (MEN, "himself", "herself")):
        for name in names:
            for noun in NOUNS[:4]:
                start = f"{name} told the {noun}s about"
                yield "reflexive", f"{start} {own}.", f"{start} {others}."
    for thing in THINGS:
        for name in (*WOMEN, *MEN):
            start = f"{name} bought"
            yield "determiner", f"{start} these {thing}s.", f"{start} this {thing}s."
    for right, wrong in PAST:
        for noun in NOUNS:
            start = f"The {noun} has never"
            yield "participle", f"{start} {right} so well.", f"{start} {wrong} so well."


def choices(chance: random.Random) -> Iterator[dict[str, Any]]:
    """24 pairs of each phenomenon; which sentence is right alternates."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, *pair in grammar(chance):
        found.setdefault(name, []).append((pair[0], pair[1]))
    for name, pairs in found.items():
        for number, (right, wrong) in enumerate(chance.sample(pairs, 24)):
            first, second = (right, wrong) if number % 2 else (wrong, right)
            label = "first" if number % 2 else "second"
            yield {
                "uid": f"{name}-{number}", "first": first, "second": second,
                "better": label, "tag": name,
            }  # fmt: skip


def followings(chance: random.Random) -> Iterator[dict[str, Any]]:
    """Whether the second sentence follows from the first."""
    for number in range(96):
        name, other = chance.sample((*WOMEN, *MEN), 2)
        place, elsewhere = chance.sample(PLACES, 2)
        many, label = chance.randint(3, 9), ("yes", "no")[number % 2]
        is_true = label == "yes"
        kind = ("number", "place", "order")[number % 3]
        if kind == "number":
            text = f"{name} has {many} apples and eats one."
            said = f"{name} has {many - 1 if is_true else many + 1} apples left."
        elif kind == "place":
            text = f"{name} went from the {place} to the {elsewhere}."
            said = f"{name} is in the {elsewhere if is_true else place} now."
        else:
            text = f"{name} is older than {other}."
            said = (
                f"{other} is younger than {name}." if is_true else f"{other} is older than {name}."
            )
        yield {
            "uid": f"{kind}-{number}", "text": text, "said": said, "follows": label, "tag": kind
        }  # fmt: skip


def words(chance: random.Random) -> Iterator[dict[str, Any]]:
    """Whether a meaning is that of a word; wrong ones are of a word of the same kind."""
    for place, (word, meaning) in enumerate(MEANINGS):
        kind = place - place % 4
        other = MEANINGS[kind + (place - kind + chance.randint(1, 3)) % 4][1]
        for label, shown in (("yes", meaning), ("no", other)):
            yield {"uid": f"{word}-{label}", "word": word, "meaning": shown, "fits": label}


def review(chance: random.Random, label: str) -> str:
    one, other = chance.sample(GOOD if label == "positive" else BAD, 2)
    first, second = chance.sample(SUBJECTS, 2)
    joint = chance.choice(("and", "while"))
    return f"{first} was {one} {joint} {second.lower()} was {other}, {chance.choice(ENDS)}."


def pool(chance: random.Random) -> Iterator[dict[str, Any]]:
    """Reviews to choose from: of eight one has the wrong label, and one is no review."""
    for number in range(400):
        label = ("positive", "negative")[number % 2]
        text, said = review(chance, label), label
        if number % 8 in (2, 5):
            said = "negative" if label == "positive" else "positive"
        elif number % 8 == 7:
            text = f"{chance.choice(OFF_TOPIC)} {chance.choice(OFF_TOPIC)} Note {number}."
        votes = [{"worker": f"pool-{n}", "label": said} for n in (1, 2)]
        yield {
            "task": "data-reviews", "round": 1, "uid": f"pool-{number}",
            "context": {}, "input": {"text": text}, "author": None,
            "author_label": said, "model_prediction": None,
            "model_wrong": None, "validations": votes, "metadata": {},
        }  # fmt: skip


def reviews(chance: random.Random) -> Iterator[dict[str, Any]]:
    """Clean ones, on which the one model is scored."""
    for number in range(120):
        label = ("positive", "negative")[number % 2]
        yield {"uid": f"test-{number}", "text": review(chance, label), "label": label}


def write(place: str, rows: Iterator[dict[str, Any]]) -> None:
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (READY / place).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write("translation/translation-pairs/sentences.jsonl", translations())
    write("small-language-models/slm-grammar/sentences.jsonl", choices(random.Random(1)))
    write("small-language-models/slm-meaning/sentences.jsonl", followings(random.Random(2)))
    write("small-language-models/slm-words/words.jsonl", words(random.Random(3)))
    write("data-centric/data-reviews/pool.jsonl", pool(random.Random(4)))
    write("data-centric/data-reviews/reviews.jsonl", reviews(random.Random(5)))
