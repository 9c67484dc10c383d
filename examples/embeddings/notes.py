"""Labelled sentences as embeddings of a real model, without a download: notes about people.

    python examples/embeddings/notes.py notes.npz

Each note speaks of one person: what it is about (``topic``) may be used, whether that is a woman or a man (``gender``)
is private. The sentences are made up from templates; their embeddings (256 numbers, column ``v``) are those of
wordllama, whose weights are inside its wheel. ``public`` is another view of the same texts, a model that anybody could
make: a bag of hashed words, projected at random.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

NAMES = {
    "woman": "Anna Maria Ruth Julia Nora Clara Emma Ines Lena Sofia Irene Paula Vera Marta Helen Alice Laura Rosa",
    "man": "Paul Peter Martin Jonas Victor Oscar Felix Bruno David Simon Hugo Anton Robert Leon Marco Henry Max Otto",
}
WORDS = {
    "woman": {"they": "she", "them": "her", "their": "her", "person": "woman", "partner": "husband", "kin": "sister"},
    "man": {"they": "he", "them": "him", "their": "his", "person": "man", "partner": "wife", "kin": "brother"},
}
TOPICS = {
    "heart": (
        "{name} came in with {pain} in the chest and said that {they} could not climb {place} any more.",
        "The {person} takes {drug} for {their} blood pressure, and {their} pulse was irregular {when}.",
        "{name} had a bypass {when}; {their} {kin} reports that {they} sleeps badly after {drug}.",
        "An echo showed a weak valve, so we told {them} to avoid {place} and to come back {when}.",
    ),
    "skin": (
        "{name} shows a red rash on {their} {limb} that began {when}, with {pain} at night.",
        "The {person} used an ointment with {drug} on {their} {limb}, and the eczema faded.",
        "A mole on {their} {limb} has grown; {name} asks whether it must be removed {when}.",
        "{their} {partner} noticed the blisters on {their} {limb} after work at {place}.",
    ),
    "sleep": (
        "{name} lies awake until morning and feels {pain} all day; {they} tried {drug}.",
        "The {person} snores so loudly that {their} {partner} moved to another room {when}.",
        "{name} dreams of {place} and wakes up sweating; {they} wants {drug} for the nights.",
        "Since {when} {they} falls asleep at {place}, and {their} {kin} is worried about the insomnia.",
    ),
    "injury": (
        "{name} fell at {place} and broke {their} {limb}; a cast was put on {when}.",
        "The {person} sprained {their} {limb} while running and feels {pain} when {they} bends it.",
        "{their} {limb} was stitched after an accident at {place}, and {they} was given {drug}.",
        "A {kin} drove {them} to us {when}: the {limb} is swollen and {they} cannot move it.",
    ),
    "bills": (
        "{name} asks why the invoice of {when} lists {drug} twice and wants {their} money back.",
        "The insurer refused to pay for {their} stay at {place}; {they} sends the form again.",
        "{name} pays by instalments, and {their} {partner} called about the reminder of {when}.",
        "The {person} moved to {place} and gives {their} new bank account for the refund.",
    ),
    "diet": (
        "{name} wants to lose weight by summer; {they} eats too much bread at {place}.",
        "The {person} is intolerant to milk and asks {their} {partner} to cook without {drug}.",
        "A nutritionist gave {them} a plan with more vegetables, and {name} has lost four kilos {when}.",
        "{their} sugar is too high: {they} skips breakfast, has {pain} and eats sweets at {place}.",
    ),
}  # fmt: skip
SLOTS = {
    "pain": "a dull pain|a burning pain|some itching|a strong pressure|numbness|an ache|cramps|slight dizziness",
    "place": "the station|the office|the market|the stairs at home|the factory|the school|the gym|the old town",
    "drug": "aspirin|ibuprofen|cortisone|a herbal tea|vitamins|an antibiotic|paracetamol|iron tablets",
    "when": "last week|on Monday|in spring|two days ago|yesterday|before the holidays|in March|this morning",
    "limb": "left arm|right arm|left knee|right ankle|shoulder|wrist|elbow|foot",
}
ENDINGS = (
    "",
    "The file is complete.",
    "Please call back.",
    "No further questions.",
    "We will see.",
    "A letter follows.",
    "Copy to the ward.",
)


def notes(count: int, seed: int = 0) -> dict[str, Any]:
    """So many different texts with ``topic``, ``gender`` and a number of their own."""
    rng = np.random.default_rng(seed)
    texts: dict[str, tuple[str, str]] = {}
    while len(texts) < count:
        topic, gender = str(rng.choice(list(TOPICS))), str(rng.choice(list(WORDS)))
        chosen = {slot: str(rng.choice(words.split("|"))) for slot, words in SLOTS.items()}
        sentence = str(rng.choice(TOPICS[topic])).format(
            name=rng.choice(NAMES[gender].split()), **WORDS[gender], **chosen
        )
        text = f"{sentence[0].upper()}{sentence[1:]} {rng.choice(ENDINGS)}".strip()
        texts.setdefault(text, (topic, gender))
    labels = list(texts.values())
    return {
        "note": np.array([f"n{number}" for number in range(count)]),
        "text": np.array(list(texts)),
        "topic": np.array([topic for topic, _ in labels]),
        "gender": np.array([gender for _, gender in labels]),
    }


def embed(texts: Sequence[str]) -> np.ndarray[Any, Any]:
    """(N, 256) by wordllama, from the weights and the tokenizer inside its wheel."""
    import wordllama

    here = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=here, disable_download=True)
    return np.asarray(model.embed(list(texts), norm=True), dtype=np.float32)


def embed_publicly(texts: Sequence[str], size: int = 256) -> np.ndarray[Any, Any]:
    """(N, size): words, hashed and projected at random. Everybody can make it, and it says which words are there."""
    rows = []
    for text in texts:
        words = [zlib.crc32(word.strip(".,;:").lower().encode()) for word in text.split()]
        rows.append(sum(np.random.default_rng(word).normal(size=size) for word in words) / len(words) ** 0.5)
    return np.asarray(rows, dtype=np.float32)


def main() -> None:
    out = Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 6_000
    found = notes(count)
    texts = found.pop("text").tolist()
    np.savez(out, v=embed(texts), **found)
    np.savez(out.with_name(f"{out.stem}-public.npz"), public=embed_publicly(texts))
    out.with_suffix(".txt").write_text("\n".join(texts) + "\n")


if __name__ == "__main__":
    main()
