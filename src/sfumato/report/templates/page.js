"use strict";
(() => {
  const { draw, html } = charts;
  const byId = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  let data;

  // The trade-off: a chart for the chosen threat, and beside it the chosen run.

  function picture(row, i) {
    const uri = data.pictures[row.key][i];
    if (!uri) return html("span");
    const image = html("img");
    image.src = uri;
    image.alt = `record ${i + 1}, ${row.label}${row.attack ? " by " + row.attack : ""}`;
    return image;
  }

  function showRun(number, panel, chips) {
    const run = data.runs[number];
    const facts = run.facts.map(([name, value]) => html("div", "", html("dt", "", name), html("dd", "", value)));
    const nodes = [html("h3", "", run.title), html("dl", "", ...facts)];
    const kept = run.rows.length ? data.pictures[run.rows[0].key].length : 0;
    const records = Math.min(kept, run.most ?? kept);
    const square = run.kind === "image" || run.kind === "audio";
    const across = square ? 4 : 2;
    for (let from = 0; from < records; from += across) {
      const strip = html("div", square ? "strip" : "strip smooth");
      for (const row of run.rows) {
        strip.append(html("span", "", row.label));
        for (let i = from; i < from + across; i += 1) strip.append(picture(row, i));
      }
      nodes.push(strip);
    }
    if (run.absent) nodes.push(html("p", "absent", run.absent));
    panel.replaceChildren(...nodes);
    for (const chip of all("button", chips)) chip.setAttribute("aria-pressed", String(Number(chip.dataset.run) === number));
  }

  // A ring around the mark of the chosen run; empty where the chart lacks it.
  function ring(figure, number) {
    const marker = { symbol: "circle-open", size: 24, color: "var(--ink)", line: { width: 1.8 } };
    const trace = figure.data.find(({ customdata }) => customdata?.includes(number));
    const at = trace?.customdata.indexOf(number);
    const [x, y] = trace ? [[trace.x[at]], [trace.y[at]]] : [[], []];
    return { type: "scatter", mode: "markers", hoverinfo: "skip", showlegend: false, marker, x, y };
  }

  function tradeoff(front, index) {
    const node = byId(`front-${index}`);
    const [panel, chips] = [byId(`front-${index}-panel`), byId(`front-${index}-chips`)];
    const [choice, slider, raw] = ["choice", "slider", "raw"].map((part) => byId(`front-${index}-${part}`));
    let [current, threat] = [front.start, 0];
    const show = () => {
      const { figure, leakage } = front.figures[threat];
      raw.parentNode.hidden = !leakage;
      const shown = leakage && !raw.checked ? leakage : figure;
      draw(node, { ...shown, data: [...shown.data, ring(shown, current)] });
    };
    const choose = (number) => {
      if (!Number.isInteger(number) || number === current) return;
      current = number;
      showRun(current, panel, chips);
      show();
    };
    const ask = (event) => {
      threat = Number(event.target.value);
      if (choice) choice.value = threat;
      if (slider) slider.value = threat;
      slider?.setAttribute("aria-valuetext", front.figures[threat].name);
      show();
    };
    slider?.setAttribute("aria-valuetext", front.figures[0].name);
    choice?.addEventListener("change", ask);
    slider?.addEventListener("input", ask);
    raw.addEventListener("change", show);
    node.addEventListener("chosen", ({ detail }) => choose(detail));
    for (const event of ["click", "focusin"]) chips.addEventListener(event, ({ target }) => choose(Number(target.dataset.run ?? NaN)));
    showRun(current, panel, chips);
    show();
  }

  // One record of one run in every form.

  function explorer(section) {
    const [run, place, said] = ["run", "place", "said"].map((part) => section.querySelector(`[data-of="${part}"]`));
    const tiles = section.querySelector(".tiles");
    let record = 0;
    const show = () => {
      const { tiles: rows, title, kind } = data.runs[Number(run.value)];
      const kept = data.pictures[rows[0].key].length;
      record = (record + kept) % kept;
      place.value = `record ${record + 1} of ${kept}`;
      const flat = kind === "image" || kind === "audio" ? "" : " flat";
      tiles.className = `tiles${flat}`;
      tiles.replaceChildren(...rows.map((row) => {
        const name = row.attack ? `${row.label} by ${row.attack}` : row.label;
        const notes = row.got ? [html("small", "", row.got)] : [];
        return html("figure", row.attack ? "rebuilt" : "", picture(row, record), html("figcaption", "", name, ...notes));
      }));
      said.textContent = `${title}, ${place.value}`;
    };
    const step = (records, runs = 0) => {
      record += records;
      if (runs) run.selectedIndex = (run.selectedIndex + runs + run.length) % run.length;
      show();
    };
    run.addEventListener("change", show);
    for (const button of all("[data-step]", section)) button.addEventListener("click", () => step(Number(button.dataset.step)));
    tiles.addEventListener("keydown", (event) => {
      const asked = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!asked) return;
      event.preventDefault();
      step(...asked);
    });
    show();
  }

  // Small charts, and points in space.

  function keyEntry({ glyph, colour, name }) {
    const mark = html("i", "", glyph);
    mark.style.color = colour;
    return html("span", "", mark, ` ${name}`);
  }

  function chart({ title, note }) {
    const node = html("div", "plot");
    node.setAttribute("role", "img");
    node.setAttribute("aria-label", `${title}. ${note}`);
    return html("figure", "", html("figcaption", "", html("b", "", title), html("span", "", note)), node);
  }

  function onChoice(id, show) {
    // There is no list where there is nothing to choose.
    byId(id)?.addEventListener("change", (event) => show(Number(event.target.value)));
  }

  function board(sheets, index) {
    const node = byId(`board-${index}`);
    const show = (number) => {
      const { key, panels } = sheets[number];
      const drawn = panels.map(chart);
      const legend = key.length ? [html("p", "key", ...key.map(keyEntry))] : [];
      node.replaceChildren(...legend, html("div", "grid", ...drawn));
      panels.forEach((figure, i) => draw(drawn[i].lastChild, figure));
    };
    show(0);
    onChoice(`board-${index}-choice`, show);
  }

  function inSpace({ figures, start }, index) {
    const show = (number) => draw(byId(`space-${index}`), figures[number]);
    show(start);
    onChoice(`space-${index}-choice`, show);
  }

  // Tables that are sorted by a click on a head; empty cells come last.

  function sortable(table, sorted) {
    table.tHead?.addEventListener("click", ({ target }) => {
      const head = target.closest("th[aria-sort]");
      if (!head) return;
      const way = head.ariaSort === "ascending" ? "descending" : "ascending";
      for (const other of all("th[aria-sort]", table)) other.ariaSort = other === head ? way : "none";
      sorted(head.cellIndex, way === "ascending" ? 1 : -1);
    });
  }

  function compared(a, b, sign) {
    const [missingA, missingB] = [a === "", b === ""];
    if (missingA || missingB) return missingA - missingB;
    const [x, y] = [Number(a), Number(b)];
    return sign * (Number.isNaN(x) || Number.isNaN(y) ? String(a).localeCompare(String(b)) : x - y);
  }

  function matrix(table) {
    const order = (row, i) => row.cells[i].dataset.order ?? row.cells[i].textContent.trim();
    sortable(table, (i, sign) => {
      const rows = [...table.tBodies[0].rows].sort((a, b) => compared(order(a, i), order(b, i), sign));
      table.tBodies[0].append(...rows);
    });
  }

  // All figures.

  function parsed(csv) {
    const rows = [[]];
    for (const [, quoted, bare, end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^,\n]*))(,|\n|$)/g)) {
      rows.at(-1).push(quoted === undefined ? bare : quoted.replaceAll('""', '"'));
      if (end === "\n") rows.push([]);
      if (end === "") break;
    }
    return rows.filter((row) => row.length > 1);
  }

  const TEXTS = new Set(["data", "run", "method", "setting", "threat", "target", "attack", "metric", "better_for_owner", "leakage_by", "group", "note"]);
  const SHOWN = ["data", "method", "setting", "threat", "target", "group", "attack", "metric", "value", "ci_low", "ci_high", "baseline", "control", "leakage", "releases", "n"];

  function figures() {
    const [columns, ...rows] = parsed(data.csv);
    const at = Object.fromEntries(columns.map((name, i) => [name, i]));
    const shown = SHOWN.filter((name) => new Set(rows.map((row) => row[at[name]])).size > 1 || !["data", "setting", "target", "group", "releases"].includes(name));
    const table = document.querySelector("table.every");
    const head = html("tr", "", ...shown.map((name) => {
      const button = html("button", "", name.replaceAll("_", " "));
      button.type = "button";
      const th = html("th", TEXTS.has(name) ? "" : "num", button);
      th.scope = "col";
      th.ariaSort = "none";
      return th;
    }));
    table.replaceChildren(html("thead", "", head), html("tbody"));
    const [search, threat, worst, found, more] = ["search", "of-threat", "only-worst", "found", "show-all"].map(byId);
    threat.append(...[...new Set(rows.map((row) => row[at.threat]))].map((name) => html("option", "", name)));
    let [by, limit] = [null, 100];
    const text = rows.map((row) => row.join(" ").toLowerCase());
    const short = (value) => (value === "" ? "" : String(Number(Number(value).toPrecision(4))));
    const show = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let kept = rows.filter((row, i) => words.every((word) => text[i].includes(word))
        && (!threat.value || row[at.threat] === threat.value) && (!worst.checked || row[at.worst] === "1"));
      if (by) kept = kept.toSorted((a, b) => compared(a[by[0]], b[by[0]], by[1]));
      table.tBodies[0].replaceChildren(...kept.slice(0, limit).map((row) => html("tr", row[at.worst] === "1" ? "worst" : "", ...shown.map((name) => {
        const value = row[at[name]];
        return html("td", TEXTS.has(name) ? "" : "num", TEXTS.has(name) ? value : short(value));
      }))));
      found.textContent = `${Math.min(limit, kept.length)} of ${kept.length} figures that match, of ${rows.length}.`;
      more.hidden = kept.length <= limit;
    };
    sortable(table, (i, sign) => {
      by = [at[shown[i]], sign];
      show();
    });
    for (const field of [search, threat, worst]) field.addEventListener("input", () => { limit = 100; show(); });
    more.addEventListener("click", () => { limit = Infinity; show(); });
    show();
    byId("save-csv").addEventListener("click", () => save("figures.csv", "text/csv", data.csv));
    byId("save-json").addEventListener("click", () => {
      const typed = rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, TEXTS.has(name) ? row[i] : row[i] === "" ? null : Number(row[i])])));
      save("figures.json", "application/json", `${JSON.stringify(typed, null, 1)}\n`);
    });
    byId("copy-csv").addEventListener("click", copy);
  }

  function save(name, type, content) {
    const link = html("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 5000);
  }

  async function copy() {
    const old = () => {
      const area = html("textarea", "", data.csv);
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      if (!done) throw new Error("refused");
    };
    const said = byId("copied");
    try {
      await (navigator.clipboard ? navigator.clipboard.writeText(data.csv).catch(old) : old());
      said.textContent = "Copied.";
    } catch {
      said.textContent = "The browser did not allow copying.";
    }
  }

  // Folds: what an address names is opened; printing the summary prints nothing else.

  function opened() {
    const aim = location.hash.length > 1 ? byId(decodeURIComponent(location.hash.slice(1))) : null;
    for (let node = aim; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    if (aim?.id.startsWith("run-")) aim.focus();
    aim?.scrollIntoView();
  }

  function summary() {
    const choice = byId("of-sheet");
    const show = () => { for (const sheet of all(".sheet")) sheet.hidden = sheet.dataset.sheet !== choice.value; };
    choice.addEventListener("change", show);
    byId("print-sheet").addEventListener("click", () => {
      document.body.classList.add("only-summary");
      window.print();
      document.body.classList.remove("only-summary");
    });
  }

  function start() {
    if (!byId("data")) return;
    data = JSON.parse(byId("data").textContent);
    data.fronts.forEach(tradeoff);
    all("[data-explorer]").forEach(explorer);
    data.boards.forEach(board);
    data.spaces.forEach(inSpace);
    all("table.leakage").forEach(matrix);
    for (const box of all("[data-every-metric]")) {
      box.addEventListener("change", () => box.closest(".methods").classList.toggle("brief", !box.checked));
    }
    for (const button of all("[data-open-all]")) {
      button.addEventListener("click", () => {
        const folds = all("details", button.closest(".evidences"));
        const open = folds.some((fold) => !fold.open);
        for (const fold of folds) fold.open = open;
        button.textContent = open ? "Close all evidence" : "Open all evidence";
      });
    }
    figures();
    summary();
  }

  // A live page: asks its server every other second, and puts the new sections in the place of the old ones.

  const fold = (details) => `${details.closest("[id]")?.id}|${details.querySelector("summary").textContent}`;
  const fields = () => all("main select, main input:not([type='range'])").filter((node) => node.id);
  const chosen = (node) => (node.type === "checkbox" ? node.checked : node.selectedOptions?.[0].textContent ?? node.value);

  // Gives a field what was chosen in it before, if that is still there.
  function restore(node, value) {
    if (value === undefined || value === chosen(node)) return;
    if (node.type === "checkbox") node.checked = value;
    else if (node.options) node.selectedIndex = [...node.options].findIndex((option) => option.textContent === value);
    else node.value = value;
    if (node.options && node.selectedIndex < 0) node.selectedIndex = 0;
    for (const kind of ["input", "change"]) node.dispatchEvent(new Event(kind));
  }

  async function renewed() {
    const answer = await fetch("./", { cache: "no-store" });
    if (!answer.ok) throw new Error(await answer.text());
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const open = new Set(all("main details[open]").map(fold));
    const values = new Map(fields().map((node) => [node.id, chosen(node)]));
    const [at, top] = [document.activeElement?.id, window.scrollY];
    for (const part of ["header", "nav", "main"]) document.querySelector(part).replaceWith(document.adoptNode(fresh.querySelector(part)));
    document.title = fresh.title;
    start();
    for (const details of all("main details")) details.open = open.has(fold(details));
    for (const node of fields()) restore(node, values.get(node.id));
    if (at) byId(at)?.focus({ preventScroll: true });
    window.scrollTo({ top, behavior: "instant" });
  }

  function told({ runs, unread }) {
    const done = runs.filter(({ stage }) => stage === "done").length;
    const busy = runs.filter(({ stage }) => stage === "fitting" || stage === "fitted")
      .map(({ name, stage, detail }) => `${name}: ${stage}${detail ? `, ${detail}` : ""}`);
    const text = [`${done} of ${runs.length} runs done`, ...busy.slice(0, 4), ...unread].join(" · ");
    const node = byId("news");
    if (node.textContent !== text) node.textContent = text;
  }

  async function follow(address) {
    let version = null;
    const ask = async () => {
      try {
        const answer = await fetch(address, { cache: "no-store" });
        if (!answer.ok) throw new Error(await answer.text());
        const state = await answer.json();
        told(state);
        if (version !== null && state.version !== version) await renewed();
        version = state.version;
      } catch (error) {
        const gone = error instanceof TypeError; // nobody answered
        byId("news").textContent = gone ? "The server has ended; this is the last state that it told." : error.message;
      }
      setTimeout(ask, 2000);
    };
    await ask();
  }

  start();
  opened();
  // Paper cannot be clicked: the warnings are always printed.
  window.addEventListener("beforeprint", () => { for (const details of all("details.warnings")) details.open = true; });
  window.addEventListener("hashchange", opened);
  if (document.body.dataset.live) follow(document.body.dataset.live);
})();
