"""What is wrong with a plugin is said in one sentence, by its name."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from plugged import plug
from sfumato.core.errors import UsageError
from sfumato.core.extras import require
from sfumato.mechanisms import mechanism_class, names


def test_plugin_is_listed_and_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plug(monkeypatch, "mechanisms", "dnn-again", "sfumato.mechanisms.baselines.plain_features:DNN")
    assert names()[-1] == "dnn-again"
    with pytest.raises(UsageError, match="is no Mechanism with name = 'dnn-again'"):
        mechanism_class("dnn-again")


def test_plugin_cannot_replace_a_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    plug(monkeypatch, "mechanisms", "ran", "os:path")
    assert names().count("ran") == 1
    assert mechanism_class("ran").__module__ == "sfumato.mechanisms.ran.mechanism"


@pytest.mark.parametrize("place", ["no_such_module:X", "os:no_such_name"])
def test_plugin_that_cannot_be_imported_is_named(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plug(monkeypatch, "mechanisms", "broken", place)
    with pytest.raises(UsageError, match=r"the plugin 'broken' of .* cannot be imported"):
        mechanism_class("broken")


def test_missing_extra_is_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"the page needs no_such_module: pip install 'sfumato\[report\]'"):
        require("report", "the page", "json", "no_such_module")


def test_core_works_without_the_extras() -> None:
    """Fit, audit and release with every optional package hidden."""
    code = (
        "import sys\n"
        "from importlib.machinery import PathFinder\n"
        "hidden = 'opendp dp_accounting mlxtend pandas matplotlib flwr ray umap huggingface_hub'.split()\n"
        "class Rest:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        return None if name.partition('.')[0] in hidden else PathFinder.find_spec(name, path, target)\n"
        "sys.meta_path = [Rest() if finder is PathFinder else finder for finder in sys.meta_path]\n"
        "import numpy as np\n"
        "import sfumato\n"
        "from sfumato.auditing import SMOKE\n"
        "rng = np.random.default_rng(0)\n"
        "y, s = rng.integers(0, 2, 400), rng.integers(0, 2, 400)\n"
        "x = np.clip(0.3 * rng.random((400, 8)) + 0.4 * y[:, None] + 0.2 * s[:, None], 0, 1)\n"
        "data = sfumato.Dataset.from_arrays(x, utility={'y': y}, private={'s': s})\n"
        "splits = sfumato.split(data, seed=0)\n"
        "result = sfumato.audit(sfumato.RAN(epochs=1).fit(splits.owner), splits, effort=SMOKE)\n"
        "print(sorted(result.worst))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    wanted = {"attribute:s", "membership", "reconstruction", "reidentification"}
    assert wanted <= set(ast.literal_eval(done.stdout)), done.stderr[-2000:]
