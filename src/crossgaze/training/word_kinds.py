"""What kind of word a word is, found in captions alone: things, their plurals, colours, attributes.

No tagger and no download. In captions a noun shows itself between a determiner and a word that
cannot belong to its phrase, with nothing but attributes between:

    a [red] DOG in ...     the BEACH .     two [young] GIRLS are ...

and an attribute between a determiner and a noun. A word counts as what it is used as more often, if
it occurs often enough and is so used in at least one of `SHARE` places; that leaves out verbs that
are nouns now and then ("the man *stands* on the *stands*"). Left out by a list: words that name no
thing one could point at ("way", "background", "trick"), and parts of bodies, which are in every
photograph of somebody whether a caption says so or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from crossgaze.vision.objects.words import EMPTY, IRREGULAR, PLURAL_ONLY, singular

WordKind = Literal["thing", "things", "colour", "attribute"]

SHARE = 0.08  # of a word's occurrences that must show its kind
_DETERMINERS = """
    a an the his her their its this these those two three four five six seven eight nine
    ten several some many
"""
DETERMINERS = frozenset(_DETERMINERS.split())
# Words that end a noun phrase. Any sign that is no word does too. "that" is one of them and no
# determiner: in captions it stands for the noun before it ("a dog that runs").
_BOUND_WORDS = """
    that in on at with by for from to into onto over under behind beside near next up down off
    out around through against and or but as is are was were has have while who which during along
    across above below outside inside between towards toward among of wearing holding
"""
_BOUNDS = DETERMINERS | frozenset(_BOUND_WORDS.split())
_NO_THINGS = """
    air area background base bend break closeup competition corner course curve day distance
    event fall fun foreground game half image jump kind left life line object part photo photograph
    picture place race ride right section shot something space stunt thing things time top trick
    turn video walk way
    arm arms backs beard body chest ear ears eye eyes face faces feet finger fingers foot fur hair
    hand hands head heads leg legs mouth mouths neck nose paw paws shoulder shoulders tail teeth
    tongue
"""
_NOTHING = EMPTY | frozenset(_NO_THINGS.split())
# No person is swapped for another: a man is also a person, a guy, a player, a friend.
_PERSONS = """
    adult adults artist athlete athletes audience babies baby band bicyclist bicyclists biker
    bikers boarder boy boys bride brother brothers catcher cheerleader cheerleaders chef child
    children climber climbers clown couple couples cowboy cowboys crew crowd cyclist cyclists
    dancer dancers daughter driver families family father female females fireman firefighter
    firefighters fisherman friend friends gentleman girl girls goalie golfer groom group guy guys
    hiker hikers individual infant jockey kid kids ladies lady male males man men model mom
    mother motorcyclist musician musicians officer officers operator passengers pedestrian
    pedestrians people performer performers person persons photographer pitcher player players
    police policeman policemen quarterback racer racers referee rider riders runner runners sister
    sisters skateboarder skateboarders skater skaters skier skiers snowboarder snowboarders soldier
    soldiers son student students surfer surfers swimmer swimmers team teenager teenagers teens
    toddler toddlers tourist tourists umpire waitress wakeboarder woman women worker workers
    wrestler wrestlers youth youths
"""
PERSONS = frozenset(_PERSONS.split())
# Colours by family; two of one family may name the same thing.
_FAMILIES = (
    "black",
    "white cream",
    "gray grey silver",
    "red maroon crimson",
    "pink purple violet lavender",
    "blue navy turquoise teal",
    "green",
    "yellow gold golden blond blonde orange tan beige brown",
)
COLOURS: Mapping[str, int] = {
    word: number for number, words in enumerate(_FAMILIES) for word in words.split()
}


def find_kinds(captions: Iterable[Sequence[str]], least: int = 20) -> dict[str, WordKind]:
    """Return the kind of every word that has one.

    Args:
        captions: lower-case words of each (training) caption, marks among them.
        least: occurrences from which on a word counts.

    Example:
        >>> captions = [["a", "red", "dog", "."], ["the", "dogs", "run"], ["a", "dog", "runs"]]
        >>> find_kinds([*captions, ["two", "dogs", "."]] * 20)
        {'dog': 'thing', 'dogs': 'things', 'red': 'colour'}
    """
    rows = [[*(word if _is_word(word) else "" for word in caption), ""] for caption in captions]
    seen = Counter(word for row in rows for word in row if word)
    often = {word for word, count in seen.items() if count >= least}
    alone = Counter(word for row in rows for word in _between(row, ()))
    guess = {word for word, count in alone.items() if count >= SHARE * seen[word]}
    before = Counter(
        row[i]
        for row in rows
        for i in range(1, len(row) - 2)
        if row[i - 1] in DETERMINERS and _ends(row[i + 2]) and row[i + 1] in guess
    )
    attributes = {
        word
        for word, count in before.items()
        if count > alone[word] and count >= SHARE * seen[word] and word not in _BOUNDS
    }
    heads = Counter(word for row in rows for word in _between(row, attributes | set(COLOURS)))
    found: dict[str, WordKind] = {}
    for word in seen:  # in the order they occur, so that one corpus gives one result
        if word not in often or word in _NOTHING or word in _BOUNDS:
            continue
        if word in COLOURS:
            found[word] = "colour"
        elif word in attributes:
            found[word] = "attribute"
        elif word in PERSONS or heads[word] >= SHARE * seen[word]:
            found[word] = "things" if _is_plural(word, seen) else "thing"
    return dict(sorted(found.items(), key=lambda pair: -seen[pair[0]]))


def stem(word: str) -> str:
    """Return what a word shares with its plural and the forms made from it, roughly.

    Example:
        >>> [stem(word) for word in ("dogs", "riding", "rider", "ride", "snowy", "women")]
        ['dog', 'rid', 'rid', 'rid', 'snow', 'woman']
    """
    word = IRREGULAR.get(word, word)
    if word.endswith(("ay", "ey", "oy", "uy")):  # grey: this y is no ending
        return word
    for end in ("ings", "ing", "ers", "ies", "ier", "ed", "er", "es", "s", "y", "e"):
        if word.endswith(end) and len(word) - len(end) >= 3 and not word.endswith("ss"):
            word = word[: len(word) - len(end)]
            break
    doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz"
    return word[:-1] if doubled else word  # running, runner -> run


def _between(row: Sequence[str], attributes: Iterable[str]) -> Iterable[str]:
    """Yield the words of a caption that stand where a noun stands."""
    for start, word in enumerate(row):
        if word not in DETERMINERS:
            continue
        place = start + 1
        while place < len(row) - 1 and row[place] in attributes and not _ends(row[place + 1]):
            place += 1
        if place < len(row) - 1 and not _ends(row[place]) and _ends(row[place + 1]):
            yield row[place]


def _ends(word: str) -> bool:
    return not word or word in _BOUNDS


def _is_word(word: str) -> bool:
    return word.replace("-", "").isalpha()


def _is_plural(word: str, seen: Mapping[str, int]) -> bool:
    if word in PLURAL_ONLY or singular(word, seen) != word:
        return True
    return word.endswith("s") and not word.endswith(("ss", "us", "is"))
