"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const make = (name, kind, ...children) => {
    const node = document.createElement(name);
    if (kind) node.className = kind;
    node.append(...children);
    return node;
  };
  const narrow = (node) => node.clientWidth < 560;
  const config = { displaylogo: false, responsive: true, scrollZoom: false, displayModeBar: false };

  function onChoice(id, draw) {
    // There is no list where there is nothing to choose.
    byId(id)?.addEventListener("change", (event) => draw(Number(event.target.value)));
  }

  function picture(row, i) {
    const uri = data.pictures[row.key][i];
    if (!uri) return make("span");
    const image = make("img");
    image.src = uri;
    image.alt = `record ${i + 1}, ${row.label}${row.attack ? " by " + row.attack : ""}`;
    return image;
  }

  function showRun(number, panel, chips) {
    const run = data.runs[number];
    const facts = run.facts.map(([name, value]) => make("div", "", make("dt", "", name), make("dd", "", value)));
    const nodes = [make("h3", "", run.title), make("dl", "", ...facts)];
    const kept = run.rows.length ? data.pictures[run.rows[0].key].length : 0;
    const records = Math.min(kept, run.most ?? kept);
    const square = run.kind === "image" || run.kind === "audio";
    const across = square ? 4 : 2;
    for (let from = 0; from < records; from += across) {
      const strip = make("div", square ? "strip" : "strip smooth");
      for (const row of run.rows) {
        strip.append(make("span", "", row.label));
        for (let i = from; i < from + across; i += 1) strip.append(picture(row, i));
      }
      nodes.push(strip);
    }
    if (run.absent) nodes.push(make("p", "absent", run.absent));
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

  function ring(figure, number) {
    // A ring around the mark whose pictures the panel shows; empty where the chart lacks that run.
    const marker = { symbol: "circle-open", size: 23, color: "#1c2430", line: { width: 1.6 } };
    const trace = figure.data.find(({ customdata }) => customdata?.includes(number));
    const at = trace?.customdata.indexOf(number);
    const place = trace ? { x: [trace.x[at]], y: [trace.y[at]] } : { x: [], y: [] };
    return { type: "scatter", mode: "markers", hoverinfo: "skip", showlegend: false, marker, ...place };
  }

  data.fronts.forEach((front, index) => {
    const node = byId(`front-${index}`);
    const panel = byId(`front-${index}-panel`);
    const chips = byId(`front-${index}-chips`);
    let current = front.start;
    let { figure } = front.figures[0];
    const draw = () => {
      const traces = [...structuredClone(figure.data), ring(figure, current)];
      return Plotly.react(node, traces, fitted(figure, node), config);
    };
    const choose = (number) => {
      if (!Number.isInteger(number) || number === current) return;
      current = number;
      showRun(number, panel, chips);
      const { x, y } = ring(figure, number);
      Plotly.restyle(node, { x: [x], y: [y] }, [node.data.length - 1]);
    };
    showRun(current, panel, chips);
    draw().then(() => {
      const pointed = ({ points }) => choose(points[0].customdata);
      for (const event of ["plotly_hover", "plotly_click"]) node.on(event, pointed);
    });
    for (const event of ["click", "focusin"]) {
      chips.addEventListener(event, ({ target }) => choose(Number(target.dataset.run ?? NaN)));
    }
    onChoice(`front-${index}-choice`, (number) => {
      ({ figure } = front.figures[number]);
      draw();
    });
  });

  data.spaces.forEach((space, index) => {
    const node = byId(`space-${index}`);
    const solid = make("canvas").getContext("webgl") !== null;
    const draw = (number) => {
      const layout = structuredClone(data.spaceLayout);
      layout.legend.title = { text: space.figures[number].label.replace(/[<>&]/g, "") };
      let traces = structuredClone(space.figures[number].data);
      if (!solid) {
        // The first two components in a plane.
        traces = traces.map((trace) => ({
          ...trace, type: "scatter", z: undefined, marker: { ...trace.marker, size: 7 },
        }));
        layout.margin = { l: 50, r: 10, t: 10, b: 40 };
      }
      if (narrow(node)) {
        layout.legend = { ...layout.legend, orientation: "h", y: 0, yanchor: "bottom", font: { size: 11 } };
        layout.scene.camera.eye = { x: 1.6, y: 1.6, z: 1.1 };
        for (const axis of ["xaxis", "yaxis", "zaxis"]) layout.scene[axis].title = { text: "" };
      }
      Plotly.react(node, traces, layout, config);
    };
    draw(space.start);
    onChoice(`space-${index}-choice`, draw);
  });

  function keyEntry({ glyph, colour, name }) {
    const mark = make("i", "", glyph);
    mark.style.color = colour;
    return make("span", "", mark, ` ${name}`);
  }

  function chart({ title, note }) {
    const node = make("div", "plot");
    node.setAttribute("role", "img");
    node.setAttribute("aria-label", `${title}. ${note}`);
    return make("figure", "", make("figcaption", "", make("b", "", title), make("span", "", note)), node);
  }

  data.boards.forEach((sheets, index) => {
    const board = byId(`board-${index}`);
    const draw = (number) => {
      const { key, panels } = sheets[number];
      for (const node of board.querySelectorAll(".plot")) Plotly.purge(node);
      const charts = panels.map(chart);
      const legend = key.length ? [make("p", "key", ...key.map(keyEntry))] : [];
      board.replaceChildren(...legend, make("div", "grid", ...charts));
      panels.forEach(({ data: traces, layout }, i) => {
        Plotly.newPlot(charts[i].lastChild, structuredClone(traces), structuredClone(layout), config);
      });
    };
    draw(0);
    onChoice(`board-${index}-choice`, draw);
  });

  const scores = byId("scores");
  const every = byId("every-metric");
  const fold = () => scores.classList.toggle("brief", !every.checked);
  every.addEventListener("change", fold);
  fold();

  const oldCopy = () => {
    const area = make("textarea", "", data.csv);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) throw new Error("refused");
  };
  byId("copy-csv").addEventListener("click", async () => {
    const said = byId("copied");
    try {
      await (navigator.clipboard ? navigator.clipboard.writeText(data.csv).catch(oldCopy) : oldCopy());
      said.textContent = "Copied.";
    } catch {
      said.textContent = "The browser did not allow copying.";
    }
  });
})();
