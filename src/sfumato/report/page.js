"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const make = (name, text, kind) => {
    const node = document.createElement(name);
    if (text !== undefined) node.textContent = text;
    if (kind) node.className = kind;
    return node;
  };
  const narrow = (node) => node.clientWidth < 560;
  const config = { displaylogo: false, responsive: true, scrollZoom: false, displayModeBar: false };

  function showRun(number, panel, chips) {
    const run = data.runs[number];
    const nodes = [make("h3", run.title)];
    const facts = make("dl");
    for (const [name, value] of run.facts) {
      const line = make("div");
      line.append(make("dt", name), make("dd", value));
      facts.append(line);
    }
    nodes.push(facts);
    const kept = run.rows.length ? data.pictures[run.rows[0].key].length : 0;
    const records = Math.min(kept, run.most ?? kept);
    const square = run.kind === "image" || run.kind === "audio";
    const across = square ? 4 : 2;
    for (let from = 0; from < records; from += across) {
      const strip = make("div", undefined, square ? "strip" : "strip smooth");
      for (const row of run.rows) {
        strip.append(make("span", row.label));
        for (let i = from; i < from + across; i += 1) {
          const uri = data.pictures[row.key][i];
          const picture = uri ? make("img") : make("span");
          if (uri) {
            picture.src = uri;
            picture.alt = `record ${i + 1}, ${row.label}${row.attack ? " by " + row.attack : ""}`;
          }
          strip.append(picture);
        }
      }
      nodes.push(strip);
    }
    if (run.absent) nodes.push(make("p", run.absent, "absent"));
    panel.replaceChildren(...nodes);
    for (const chip of chips.querySelectorAll("button")) {
      chip.setAttribute("aria-pressed", String(Number(chip.dataset.run) === number));
    }
  }

  function fitted(figure, node) {
    const layout = structuredClone(figure.layout);
    if (narrow(node)) {
      layout.font.size = 12;
      layout.margin = { l: 66, r: 6, t: 8, b: 46 };
      layout.yaxis.title.font = { size: 12 };
      layout.legend = { ...layout.legend, font: { size: 12 }, entrywidth: 0.45, entrywidthmode: "fraction" };
      for (const note of layout.annotations) note.font.size = 11;
    }
    return layout;
  }

  function ring(node, figure, number) {
    // A ring around the mark whose pictures the panel shows.
    for (const trace of figure.data) {
      const at = (trace.customdata || []).indexOf(number);
      if (at >= 0) {
        return {
          type: "scatter", mode: "markers", x: [trace.x[at]], y: [trace.y[at]], hoverinfo: "skip", showlegend: false,
          marker: { symbol: "circle-open", size: 23, color: "#1c2430", line: { width: 1.6 } },
        };
      }
    }
    return { type: "scatter", mode: "markers", x: [], y: [], showlegend: false, hoverinfo: "skip" };
  }

  data.fronts.forEach((front, index) => {
    const node = byId(`front-${index}`);
    const panel = byId(`front-${index}-panel`);
    const chips = byId(`front-${index}-chips`);
    const choice = byId(`front-${index}-choice`);
    let current = front.start;
    let shown = 0;
    const draw = () => {
      const figure = front.figures[shown].figure;
      const traces = [...structuredClone(figure.data), ring(node, figure, current)];
      return Plotly.react(node, traces, fitted(figure, node), config);
    };
    const choose = (number) => {
      if (typeof number !== "number" || number === current) return;
      current = number;
      showRun(number, panel, chips);
      const mark = ring(node, front.figures[shown].figure, number);
      const last = node.data.length - 1;
      Plotly.restyle(node, { x: [mark.x], y: [mark.y], marker: [mark.marker] }, [last]);
    };
    showRun(current, panel, chips);
    draw().then(() => {
      const from = (event) => choose(event.points[0].customdata);
      node.on("plotly_hover", from);
      node.on("plotly_click", from);
    });
    chips.addEventListener("click", (event) => choose(Number(event.target.dataset.run ?? NaN)));
    chips.addEventListener("focusin", (event) => choose(Number(event.target.dataset.run ?? NaN)));
    if (choice) {
      choice.addEventListener("change", () => {
        shown = Number(choice.value);
        draw();
      });
    }
  });

  function solid() {
    try {
      return Boolean(document.createElement("canvas").getContext("webgl"));
    } catch {
      return false;
    }
  }
  const flat = (trace) => ({
    ...trace, type: "scatter", z: undefined, marker: { ...trace.marker, size: 7 },
  });

  data.spaces.forEach((space, index) => {
    const node = byId(`space-${index}`);
    const choice = byId(`space-${index}-choice`);
    const deep = solid();
    const draw = (number) => {
      const layout = structuredClone(data.spaceLayout);
      layout.legend.title = { text: space.figures[number].label.replace(/[<>&]/g, "") };
      let traces = structuredClone(space.figures[number].data);
      if (!deep) {
        // Without WebGL: the first two components.
        traces = traces.map(flat);
        layout.margin = { l: 50, r: 10, t: 10, b: 40 };
      }
      if (narrow(node)) {
        layout.legend = { ...layout.legend, orientation: "h", y: 0, yanchor: "bottom", font: { size: 11 } };
        layout.scene.camera.eye = { x: 1.6, y: 1.6, z: 1.1 };
        for (const axis of ["xaxis", "yaxis", "zaxis"]) layout.scene[axis].title = { text: "" };
      }
      return Plotly.react(node, traces, layout, config);
    };
    draw(space.start);
    if (choice) choice.addEventListener("change", () => draw(Number(choice.value)));
  });

  data.boards.forEach((sheets, index) => {
    const board = byId(`board-${index}`);
    const choice = byId(`board-${index}-choice`);
    const draw = (sheet) => {
      for (const node of board.querySelectorAll(".plot")) Plotly.purge(node);
      const key = make("p", undefined, "key");
      for (const { glyph, colour, name } of sheet.key) {
        const entry = make("span");
        const mark = make("i", glyph);
        mark.style.color = colour;
        entry.append(mark, ` ${name}`);
        key.append(entry);
      }
      const panels = sheet.panels.map(({ title, note }) => {
        const panel = make("figure");
        const caption = make("figcaption");
        caption.append(make("b", title), make("span", note));
        const node = make("div", undefined, "plot");
        node.setAttribute("role", "img");
        node.setAttribute("aria-label", `${title}. ${note}`);
        panel.append(caption, node);
        return panel;
      });
      const grid = make("div", undefined, "grid");
      grid.append(...panels);
      board.replaceChildren(...(sheet.key.length ? [key] : []), grid);
      sheet.panels.forEach(({ data: traces, layout }, i) => {
        Plotly.newPlot(panels[i].lastChild, structuredClone(traces), structuredClone(layout), config);
      });
    };
    draw(sheets[0]);
    if (choice) choice.addEventListener("change", () => draw(sheets[Number(choice.value)]));
  });

  const scores = byId("scores");
  const every = byId("every-metric");
  const fold = () => scores.classList.toggle("brief", !every.checked);
  every.addEventListener("change", fold);
  fold();

  const said = byId("copied");
  const oldCopy = () => {
    const area = make("textarea", data.csv);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) throw new Error("refused");
  };
  byId("copy-csv").addEventListener("click", async () => {
    try {
      await (navigator.clipboard ? navigator.clipboard.writeText(data.csv).catch(oldCopy) : oldCopy());
      said.textContent = "Copied.";
    } catch {
      said.textContent = "The browser did not allow copying.";
    }
  });
})();
