"""The person is inside a word of a comment: nobody can know which one it becomes."""

from __future__ import annotations

import random
import re
from typing import Final

from calomel.training.edits.aimless import is_comment, lines_of
from calomel.training.edits.hunks import Step, stream
from calomel.training.edits.past import moved, past_of, places_of
from calomel.training.edits.places import asked
from calomel.training.edits.scene import Focus, Scene
from calomel.training.edits.story import Change, Story

_KIND: Final = "silence:mid_word"
_WORD: Final = re.compile(r"(?<= )[A-Za-z]{5,}(?=[ ,.;:]|\Z)")
# The rest goes back into a sentence to put a word in.
_AT_END_SHARE: Final = 0.6


def silence_mid_word(story: Story, rng: random.Random) -> Scene | None:
    """The moment inside of such a word, with the story done before it; None where the file has no comment of words."""
    end_text = story.states()[-1]
    comments = [
        (span, words)
        for span in lines_of(end_text)
        if is_comment(end_text[span[0] : span[1]], story.language) and (words := list(_WORD.finditer(end_text, *span)))
    ]
    if not comments:
        return None
    (_, end), words = rng.choice(comments)
    word = rng.choice(words)
    typed = end_text[word.start() : word.start() + rng.randint(2, len(word[0]) - 2)]
    # A comment that was there before the story lacks the word, and maybe what follows.
    stop = end if rng.random() < _AT_END_SHARE else word.end()
    gone = Change(word.start() - 1, stop, "")
    if not _apart(gone, story):
        return None
    text = gone.apply(end_text)
    edit = Change(word.start() - 1, word.start() - 1, " " + typed)
    now = edit.apply(text)
    cursor = Focus(edit.start + len(edit.text), _KIND, cursor=True)
    places = [moved(place, (gone, edit)) for place in places_of(story.changes)]
    focuses = asked(now, (), [cursor], places, _KIND, rng.choice((0, 1)), rng)
    hunks = (*past_of(story, rng).hunks(story.changes), *stream(story.path, text, [Step(edit)]))
    return Scene(story.language, story.path, now, hunks, (), focuses)


def _apart(gone: Change, story: Story) -> bool:
    return all(not gone.start <= place <= gone.end for place in places_of(story.changes))
