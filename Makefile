# Every target sets up what it needs; the machine only has to have Python 3.11 or newer and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test check bench results format wheel playground playground-static playground-test docs release clean

demo: $(STAMP)
	$(BIN)/sfumato demo

# Two workers; one file's tests stay together. Without what takes half a minute each: make test ONLY='-m "not slow"'
test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadgroup $(ONLY)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_rooms.py

# Every benchmark, hours on two cores; one: .venv/bin/python -m benchmarks NAME. Peers are installed into build/peers.
bench: $(STAMP)
	$(BIN)/python -m benchmarks

# Every study at cpu scale and the pages that follow: days on two cores, goes on where it stopped. SFUMATO_DATA: the data.
results: $(STAMP)
	$(BIN)/python docs/results/measure.py

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The wheel in an environment of its own: make wheel PYTHON=python3.13
wheel:
	rm -rf build/wheel && mkdir -p build/wheel
	$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv build/wheel/env
	build/wheel/env/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls build/wheel/sfumato-*.whl)[demo]"
	cd build/wheel && env/bin/sfumato fit ran --data digits --utility odd --private ge5 --limit 600 --set epochs=1 --out run
	cd build/wheel && env/bin/sfumato audit run --effort smoke && env/bin/sfumato report run --out report.html
	cd build/wheel && env/bin/sfumato release run --data digits --unaudited --out outbox

# The page of sfumato serve --playground: needs Node.js 20 or newer and npm.
playground: playground/node_modules
	cd playground && npm run --silent build
	@echo "next: sfumato serve BUNDLE --playground"

# The page without a server, with bundles fitted on the embedded digits: build/playground/page/index.html.
playground-static: $(STAMP) playground/node_modules
	cd playground && npm run --silent build -- --mode static
	$(BIN)/python playground/models.py build/playground/bundles --page build/playground/page

# Unit tests of the page, and the page in a headless Chromium (Debian: apt-get install chromium).
playground-test: $(STAMP) playground
	cd playground && npm test --silent
	$(BIN)/python playground/models.py build/playground/bundles
	$(BIN)/python playground/e2e/serve_and_run.py build/playground/bundles

playground/node_modules: playground/package-lock.json
	cd playground && npm ci --silent --no-audit --no-fund
	@touch $@

# The documentation as a site, with executed notebooks: build/docs/site/index.html.
docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	$(BIN)/python docs/build_site.py

# Wheel, sdist, bill of materials, licences and digests in dist/, tried in clean environments.
release: $(STAMP) playground
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "cyclonedx-bom>=5"
	$(BIN)/python tools/release.py $(addprefix --python ,$(PYTHONS))

clean:
	rm -rf $(VENV) build sfumato-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "sfumato needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@
