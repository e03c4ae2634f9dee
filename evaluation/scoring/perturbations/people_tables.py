"""Tables of the fairness kinds, all of our own writing. Keys are in lower case."""

from evaluation.scoring.perturbations.tables import word_set

# Male: female.
GENDERED = {
    "he": "she", "himself": "herself", "man": "woman", "men": "women", "boy": "girl",
    "boys": "girls", "father": "mother", "fathers": "mothers", "dad": "mom", "dads": "moms",
    "daddy": "mommy", "son": "daughter", "sons": "daughters", "brother": "sister",
    "brothers": "sisters", "husband": "wife", "husbands": "wives", "boyfriend": "girlfriend",
    "boyfriends": "girlfriends", "uncle": "aunt", "uncles": "aunts", "nephew": "niece",
    "nephews": "nieces", "grandfather": "grandmother", "grandfathers": "grandmothers",
    "grandpa": "grandma", "grandson": "granddaughter", "grandsons": "granddaughters",
    "stepfather": "stepmother", "stepson": "stepdaughter", "groom": "bride", "king": "queen",
    "kings": "queens", "prince": "princess", "princes": "princesses", "duke": "duchess",
    "gentleman": "lady", "gentlemen": "ladies", "sir": "madam",
    "mr": "ms", "male": "female", "males": "females", "actor": "actress", "actors": "actresses",
    "waiter": "waitress", "waiters": "waitresses", "host": "hostess", "hosts": "hostesses",
    "hero": "heroine", "heroes": "heroines", "businessman": "businesswoman",
    "businessmen": "businesswomen", "salesman": "saleswoman", "salesmen": "saleswomen",
    "policeman": "policewoman", "policemen": "policewomen", "fireman": "firewoman",
    "firemen": "firewomen", "chairman": "chairwoman", "spokesman": "spokeswoman",
    "congressman": "congresswoman", "schoolboy": "schoolgirl", "schoolboys": "schoolgirls",
    "widower": "widow", "wizard": "witch", "monk": "nun", "monks": "nuns", "lad": "lass",
    "masculine": "feminine", "fatherhood": "motherhood", "paternal": "maternal",
}  # fmt: skip
# After “her” these show that no noun follows, so that it is “him”.
NO_NOUN = word_set(
    """
    a about after again all along alone already also although an and anymore any anything around
    as at away back because before behind beside besides but by did do does down during each
    either even every everything for from go had has have here how i if in into is it just later
    like much never nor not nothing now of off often on once one only onto or out over quite
    rather really she he since so some something soon still than that the then there these they
    this those though through to today together tomorrow tonight too toward towards twice under
    unless until up upon very was we well were what when where whether which while who whom why
    will with without would yesterday yet you
    """
)

# Given names by how common they are in the United States (three coarse bands of our own judgement),
# of several origins in each band. Names stand in pairs: male, female.
NAMES = (
    (
        "James Mary", "John Patricia", "Robert Jennifer", "Michael Linda", "David Elizabeth",
        "William Barbara", "Richard Susan", "Joseph Jessica", "Thomas Sarah", "Daniel Karen",
        "Matthew Nancy", "Anthony Lisa", "Jose Maria", "Luis Ana", "Carlos Rosa", "Juan Carmen",
        "Kevin Michelle", "Brian Kimberly", "Paul Emily", "Steven Donna",
    ),
    (
        "Darnell Keisha", "Malik Latoya", "Terrence Ebony", "Jamal Aaliyah", "Tyrone Imani",
        "Diego Lucia", "Miguel Gabriela", "Javier Marisol", "Rafael Paola", "Mohamed Fatima",
        "Ali Aisha", "Omar Layla", "Ahmed Noor", "Wei Mei", "Hiroshi Yuki", "Raj Priya",
        "Arjun Anjali", "Vijay Lakshmi", "Connor Molly", "Brett Heather", "Wyatt Savannah",
        "Tanner Kelsey", "Ivan Olga", "Boris Svetlana",
    ),
    (
        "Deshawn Lakisha", "Kareem Shanice", "Jermaine Tamika", "Kwame Abena", "Chidi Ngozi",
        "Tariq Samira", "Yusuf Zainab", "Hassan Khadija", "Ismail Maryam", "Cuauhtemoc Xochitl",
        "Ignacio Guadalupe", "Joaquin Ximena", "Minh Thuy", "Jin Soojin", "Kenji Haruka",
        "Sandeep Deepika", "Harish Sunita", "Magnus Ingrid", "Sven Astrid", "Pierre Brigitte",
        "Giorgio Chiara", "Piotr Agnieszka", "Moshe Rivka", "Avi Shira",
    ),
)  # fmt: skip

# Terms of which each may stand for each other one of its list; owners can give lists of their own.
GROUPS = (
    ("christian", "muslim", "jewish", "hindu", "buddhist", "sikh"),
    ("christians", "muslims", "jews", "hindus", "buddhists", "sikhs"),
    ("christianity", "islam", "judaism", "hinduism", "buddhism"),
    ("american", "mexican", "german", "nigerian", "chinese", "indian", "russian", "brazilian"),
    ("americans", "mexicans", "germans", "nigerians", "indians", "russians", "brazilians"),
    ("african", "asian", "european"),
    ("africans", "asians", "europeans"),
    ("gay", "straight", "bisexual"),
    ("young people", "old people"),
    ("blind", "deaf"),
)

# Standard American English: forms of African American English that the literature describes (Green
# 2002; Ziems et al. 2022), without spellings that only mock.
AFRICAN_AMERICAN = {
    "is not": "ain't", "isn't": "ain't", "are not": "ain't", "aren't": "ain't", "am not": "ain't",
    "i'm not": "I ain't", "has not": "ain't", "hasn't": "ain't", "have not": "ain't",
    "haven't": "ain't", "did not": "ain't", "didn't": "ain't", "you all": "y'all",
    "all of you": "all y'all", "going to be": "gonna be", "about to": "finna",
    "he doesn't": "he don't", "she doesn't": "she don't",
    "it doesn't": "it don't", "there is": "it's", "there are": "it's",
    "themselves": "theyselves", "himself": "hisself", "want to": "wanna", "have to": "gotta",
    "brother": "brotha", "sister": "sista", "something": "sumn",
    "nothing": "nothin", "going": "goin", "doing": "doin", "trying": "tryin", "saying": "sayin",
    "working": "workin", "talking": "talkin", "looking": "lookin", "getting": "gettin",
}  # fmt: skip
BRITISH = {
    "color": "colour", "colors": "colours", "colorful": "colourful", "favorite": "favourite",
    "favor": "favour", "flavor": "flavour", "flavors": "flavours", "honor": "honour",
    "humor": "humour", "labor": "labour", "neighbor": "neighbour", "neighbors": "neighbours",
    "neighborhood": "neighbourhood", "rumor": "rumour", "behavior": "behaviour",
    "harbor": "harbour",
    "center": "centre", "centers": "centres", "theater": "theatre", "liter": "litre",
    "meter": "metre", "meters": "metres", "fiber": "fibre", "realize": "realise",
    "realized": "realised", "recognize": "recognise", "recognized": "recognised",
    "organize": "organise", "organized": "organised", "organization": "organisation",
    "apologize": "apologise", "apologized": "apologised", "criticize": "criticise",
    "analyze": "analyse", "traveled": "travelled", "traveling": "travelling",
    "traveler": "traveller", "canceled": "cancelled", "jewelry": "jewellery", "gray": "grey",
    "pajamas": "pyjamas", "mom": "mum", "defense": "defence", "offense": "offence",
    "catalog": "catalogue", "dialog": "dialogue", "aluminum": "aluminium",
    "airplane": "aeroplane", "apartment": "flat",
    "apartments": "flats", "elevator": "lift", "truck": "lorry", "trucks": "lorries",
    "gasoline": "petrol", "cookie": "biscuit", "cookies": "biscuits", "candy": "sweets",
    "french fries": "chips", "sidewalk": "pavement", "vacation": "holiday", "trash": "rubbish",
    "garbage": "rubbish", "diaper": "nappy", "flashlight": "torch", "soccer": "football",
    "parking lot": "car park", "cell phone": "mobile phone", "movie theater": "cinema",
    "movie": "film", "movies": "films", "faucet": "tap", "drugstore": "chemist's",
    "zip code": "postcode",
}  # fmt: skip
