"""Vectors of texts by their words, and groups of near vectors: latent semantic analysis.

Deerwester and others 1990. It needs no model, so it works in every language that has words.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

MIN_TEXTS_WITH_WORD = 3
"""A word in fewer texts can't tell groups apart."""
MAX_SHARE_WITH_WORD = 0.5
"""A word in more texts, such as "the", says nothing about a group."""
MAX_WORDS = 5000
"""The maximum number of words to count, the most frequent first."""
DIMENSIONS = 24
"""The number of dimensions of a vector."""


def build_word_vectors(texts: Sequence[frozenset[str]], seed: int) -> Matrix:
    """Return a vector of length 1 for each text, and zeros for a text without a counted word.

    The shape is (texts, at most DIMENSIONS). texts: the words of each.
    """
    # Imported on first use: most requests need no scipy.
    from scipy.sparse import csr_matrix
    from scipy.sparse.linalg import svds

    positions, rarity = _index_words(texts)
    rows, columns = [], []
    for row, words in enumerate(texts):
        for word in words:
            if word in positions:
                rows.append(row)
                columns.append(positions[word])
    # svds needs fewer dimensions than the table has rows or columns.
    dimensions = min(DIMENSIONS, len(texts) - 1, len(positions) - 1)
    if dimensions < 1:
        return np.zeros((len(texts), 1))
    weights = rarity[columns]
    table = csr_matrix((weights, (rows, columns)), shape=(len(texts), len(positions)))
    left, sizes, _right = svds(table, k=dimensions, random_state=np.random.default_rng(seed))
    return scale_to_length_one(left * sizes)


def _index_words(texts: Sequence[frozenset[str]]) -> tuple[dict[str, int], Matrix]:
    """Return the column of each counted word, and the words' inverse document frequencies."""
    counts: Counter[str] = Counter()
    for words in texts:
        counts.update(words)
    most = max(MIN_TEXTS_WITH_WORD, MAX_SHARE_WITH_WORD * len(texts))
    counted_words = [
        (word, count)
        for word, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        if MIN_TEXTS_WITH_WORD <= count <= most
    ][:MAX_WORDS]
    positions = {word: position for position, (word, _count) in enumerate(counted_words)}
    frequencies = np.array([count for _word, count in counted_words], float)
    return positions, np.log(len(texts) / frequencies) if counted_words else np.zeros(0)


def scale_to_length_one(vectors: Matrix) -> Matrix:
    """Return the rows scaled to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Matrix = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return scaled


def find_centres(vectors: Matrix, count: int, seed: int) -> Matrix:
    """Return the centres of at most `count` groups of near vectors, each of length 1.

    k-means with the start of Arthur and Vassilvitskii 2007. Rows of zeros are left out.
    """
    from scipy.cluster.vq import kmeans2

    known_rows = vectors[np.any(vectors != 0, axis=1)]
    # Equal rows can't be the start of two groups.
    count = min(count, len(np.unique(known_rows, axis=0)))
    if count < 1:
        return np.zeros((0, vectors.shape[1]))
    centres, groups = kmeans2(
        known_rows, count, minit="++", rng=np.random.default_rng(seed), missing="warn"
    )
    # A group can lose all its texts to others on the way.
    used_groups = np.unique(groups)
    return scale_to_length_one(centres[used_groups])
