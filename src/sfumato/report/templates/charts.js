"use strict";
// Draws the page's figures as SVG: marks with intervals, lines, references, matrices, and points in space.
// All text is set as text, never as markup. A node that was drawn on is drawn again when its size changes.
const charts = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const DASHES = {
    dash: "8 5", dot: "2 4", dashdot: "8 4 2 4", longdash: "14 5", longdashdot: "14 4 2 4", "6px,4px": "6 4", "2px,3px": "2 3",
  };
  const polygon = (corners, turn = 0) => Array.from({ length: corners }, (_, i) => {
    const angle = (2 * Math.PI * i) / corners - Math.PI / 2 + turn;
    return [Math.cos(angle), Math.sin(angle)];
  });
  const PLUS = [[-.33, -1], [.33, -1], [.33, -.33], [1, -.33], [1, .33], [.33, .33], [.33, 1], [-.33, 1], [-.33, .33],
    [-1, .33], [-1, -.33], [-.33, -.33]];
  const SHAPES = {
    square: [[-.85, -.85], [.85, -.85], [.85, .85], [-.85, .85]],
    diamond: polygon(4).map(([x, y]) => [1.15 * x, 1.15 * y]),
    "triangle-up": polygon(3).map(([x, y]) => [1.15 * x, 1.15 * y + .2]),
    "triangle-down": polygon(3, Math.PI).map(([x, y]) => [1.15 * x, 1.15 * y - .2]),
    cross: PLUS,
    x: PLUS.map(([x, y]) => [.75 * (x - y), .75 * (x + y)]),
    star: polygon(10).map(([x, y], i) => (i % 2 ? [.5 * x, .5 * y] : [1.25 * x, 1.25 * y])),
    pentagon: polygon(5).map(([x, y]) => [1.08 * x, 1.08 * y]),
    hexagon: polygon(6).map(([x, y]) => [1.05 * x, 1.05 * y]),
  };

  function el(name, attributes = {}, style = {}, text) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    Object.assign(node.style, style);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function html(name, kind, ...children) {
    const node = document.createElement(name);
    if (kind) node.className = kind;
    node.append(...children);
    return node;
  }

  const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`).join("");

  // A mark of a symbol at a place.
  function mark(x, y, marker, opacity = 1) {
    const [symbol, open] = [marker.symbol.replace("-open", ""), marker.symbol.endsWith("-open")];
    const r = (marker.size ?? 9) / 2;
    const style = open || symbol.endsWith("-thin")
      ? { fill: "none", stroke: marker.color, strokeWidth: marker.line?.width ?? 2 }
      : { fill: marker.color, stroke: marker.line?.color ?? "none", strokeWidth: marker.line?.width ?? 0 };
    style.opacity = opacity;
    if (symbol === "circle") return el("circle", { cx: x.toFixed(2), cy: y.toFixed(2), r }, style);
    if (symbol === "x-thin") return el("path", { d: `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}` }, style);
    if (symbol === "cross-thin") return el("path", { d: `M${x - r} ${y}H${x + r}M${x} ${y - r}V${y + r}` }, style);
    return el("path", { d: `${path(SHAPES[symbol].map(([a, b]) => [x + r * a, y + r * b]))}Z` }, style);
  }

  function written(value, format, step) {
    if (format?.endsWith("%")) return `${(100 * value).toFixed(Math.max(0, Math.min(2, -Math.floor(Math.log10(100 * step) + 1e-9))))} %`;
    if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e5)) return value.toExponential(0);
    return String(Number(value.toPrecision(4)));
  }

  // From values to places between 0 and 1, with ticks.
  function scale(spec, values) {
    const log = spec.type === "log";
    const inner = (v) => (log ? Math.log10(v) : v);
    let [low, high] = spec.range ?? [Math.min(...values.map(inner)), Math.max(...values.map(inner))];
    if (!spec.range) {
      const air = .06 * (high - low) || .5;
      [low, high] = [spec.rangemode === "tozero" ? Math.min(low, 0) : low - air, high + air];
    }
    const at = (v) => (inner(v) - low) / (high - low);
    let ticks = [];
    if (spec.showticklabels === false) ticks = [];
    else if (spec.tickvals) ticks = spec.tickvals.map((v, i) => [at(v), spec.ticktext ? spec.ticktext[i] : written(v, spec.tickformat, .01)]);
    else if (log) {
      const within = (factors) => {
        const found = [];
        for (let d = Math.floor(low) - 1; d <= high; d += 1) {
          for (const f of factors) if (f * 10 ** d >= 10 ** low && f * 10 ** d <= 10 ** high) found.push(f * 10 ** d);
        }
        return found;
      };
      const few = [[1], [1, 3], [1, 2, 5]].map(within).find((found) => found.length >= 3) ?? within([1, 2, 3, 5, 7]);
      ticks = few.map((v) => [at(v), written(v, spec.tickformat, v)]);
    } else {
      const rough = (high - low) / 5;
      const power = 10 ** Math.floor(Math.log10(rough));
      const step = power * [1, 2, 2.5, 5, 10].find((f) => f * power >= rough - 1e-12);
      for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + 1e-9 * step; v += step) ticks.push([at(v), written(Math.abs(v) < 1e-12 ? 0 : v, spec.tickformat, step)]);
    }
    return { at, ticks, fits: (v) => !log || v > 0 };
  }

  function lines(node, text) {
    node.replaceChildren(...text.split("\n").map((line, i) => html(i ? "span" : "b", "", line)));
  }

  // A title in two lines where one is too long.
  const wrapped = (text, width) => (text.length * 7.4 > width ? text.replace(" (", "\n(") : text);

  function label(x, y, text, attributes = {}) {
    const node = el("text", { x, y, ...attributes });
    text.split("\n").forEach((line, i) => node.append(el("tspan", { x, dy: i ? "1.2em" : 0 }, {}, line)));
    return node;
  }

  // Shows the text of the mark nearest to the pointer, and tells the node which one it is.
  function pointed(node, svg, marks) {
    const tip = html("div", "tip");
    tip.hidden = true;
    node.append(tip);
    const nearest = (event) => {
      const box = svg.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      let [best, least] = [null, 26];
      for (const one of marks) {
        const far = one.box ? (x >= one.box[0] && x <= one.box[2] && y >= one.box[1] && y <= one.box[3] ? 0 : 99) : Math.hypot(one.x - x, one.y - y);
        if (far < least) [best, least] = [one, far];
      }
      return best;
    };
    svg.addEventListener("pointermove", (event) => {
      const found = nearest(event);
      tip.hidden = !found?.text;
      if (tip.hidden) return;
      lines(tip, found.text);
      const left = Math.min(found.x + 14, node.clientWidth - tip.offsetWidth - 4);
      tip.style.left = `${Math.max(4, left)}px`;
      tip.style.top = `${Math.max(0, svg.offsetTop + found.y - tip.offsetHeight - 12)}px`;
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; });
    svg.addEventListener("click", (event) => {
      const found = nearest(event);
      if (Number.isInteger(found?.custom)) node.dispatchEvent(new CustomEvent("chosen", { detail: found.custom }));
    });
  }

  function legend(figure) {
    const named = figure.data.filter((trace) => trace.name && trace.showlegend !== false);
    return html("p", "key", ...named.map((trace) => {
      const sample = el("svg", { width: 26, height: 14, "aria-hidden": "true" });
      const line = trace.line && el("path", { d: "M0 7H26" }, { stroke: trace.line.color, strokeWidth: Math.min(trace.line.width, 6), strokeDasharray: DASHES[trace.line.dash] ?? "" });
      if (line) sample.append(line);
      if (trace.marker) sample.append(mark(13, 7, { ...trace.marker, size: 10 }));
      return html("span", "", sample, ` ${trace.name}`);
    }));
  }

  function plane(node, figure) {
    const { data, layout } = figure;
    const heat = data[0]?.type === "heatmap";
    const rows = heat ? data[0].z.length : 0;
    const xs = heat ? [-.5, rows - .5] : data.flatMap((t) => t.x.filter((v) => v !== null));
    const ys = heat ? [-.5, rows - .5] : data.flatMap((t) => t.y.flatMap((v, i) => (v === null ? [] : [v - (t.error_y?.arrayminus[i] ?? 0), v + (t.error_y?.array[i] ?? 0)])));
    const tight = heat ? { range: [-.5, rows - .5] } : {};
    const x = scale({ ...layout.xaxis, ...tight }, xs);
    const y = scale({ ...layout.yaxis, ...tight }, ys);
    if (layout.showlegend) node.append(legend(figure));
    const [width, height] = [node.clientWidth, node.clientHeight - (layout.showlegend ? node.firstChild.offsetHeight : 0)];
    const longest = Math.max(0, ...y.ticks.map(([, text]) => text.length));
    const across = wrapped(layout.xaxis.title?.text ?? "", width - 90);
    const titled = (layout.yaxis.title?.text ?? "").split("\n").length * (layout.yaxis.title ? 17 : 0);
    const left = (layout.yaxis.showticklabels === false ? 4 : 12 + 7.2 * longest) + titled;
    const below = (layout.xaxis.showticklabels === false ? 4 : 22 + 15 * (Math.max(1, ...x.ticks.map(([, t]) => t.split("\n").length)) - 1)) + (across ? 4 + 17 * across.split("\n").length : 0);
    let [w, h] = [Math.max(40, width - left - 26), Math.max(40, height - below - 10)];
    if (heat) [w, h] = [Math.min(w, h), Math.min(w, h)];
    const px = (v) => left + x.at(v) * w;
    const down = layout.yaxis.autorange === "reversed";
    const py = (v) => 8 + (down ? y.at(v) : 1 - y.at(v)) * h;
    const tall = heat ? h + below + 10 : height;
    const svg = el("svg", { width, height: tall, viewBox: `0 0 ${width} ${tall}`, "aria-hidden": "true" });
    const inside = el("clipPath", { id: `clip-${(plane.count = (plane.count ?? 0) + 1)}` });
    inside.append(el("rect", { x: left - 8, y: 0, width: w + 16, height: h + 16 }));
    svg.append(inside);
    const grid = el("g", { class: "axis" });
    let free = -Infinity;
    for (const [share, text] of x.ticks) {
      const place = left + share * w;
      if (layout.xaxis.showgrid !== false && !heat) grid.append(el("path", { class: "grid-line", d: `M${place} 8V${8 + h}` }));
      const half = 3.6 * Math.max(...text.split("\n").map((line) => line.length));
      if (place - half < free) continue; // no room beside the tick before
      free = place + half + 6;
      grid.append(label(place, h + 24, text, { "text-anchor": "middle" }));
    }
    for (const [share, text] of y.ticks) {
      const place = 8 + (down ? share : 1 - share) * h;
      if (layout.yaxis.showgrid !== false && !heat) grid.append(el("path", { class: "grid-line", d: `M${left} ${place}H${left + w}` }));
      grid.append(label(left - 8, place + 4, text, { "text-anchor": "end" }));
    }
    if (!heat) grid.append(el("rect", { class: "frame", x: left, y: 8, width: w, height: h }));
    if (across) grid.append(label(left + w / 2, h + 8 + below - 4 - 17 * (across.split("\n").length - 1), across, { "text-anchor": "middle", class: "title" }));
    if (layout.yaxis.title) {
      const title = label(0, 0, layout.yaxis.title.text, { "text-anchor": "middle", class: "title" });
      title.setAttribute("transform", `translate(13 ${8 + h / 2}) rotate(-90)`);
      grid.append(title);
    }
    svg.append(grid);
    const field = el("g", { "clip-path": `url(#${inside.id})` });
    const marks = [];
    if (heat) cells(data[0], field, marks, px, py, w / rows);
    for (const { x0, x1, y0, y1, line } of layout.shapes ?? []) {
      const style = { stroke: line.color, strokeWidth: line.width, strokeDasharray: DASHES[line.dash] ?? "" };
      if (y0 === y1) field.append(el("path", { d: `M${px(x0)} ${py(y0)}H${px(x1)}` }, style));
      else field.append(el("rect", { class: "band", x: px(x0), y: py(y1), width: px(x1) - px(x0), height: py(y0) - py(y1) }, style));
    }
    for (const trace of heat ? [] : data) series(trace, field, marks, px, py, x.fits, y.fits);
    for (const { y: raw, text, log } of layout.annotations ?? []) {
      const place = py(layout.yaxis.type === "log" ? 10 ** raw : raw);
      field.append(label(left + 5, Math.max(18, place - 4), text, { class: "reference" }));
    }
    svg.append(field);
    node.append(svg);
    pointed(node, svg, marks);
  }

  function cells(trace, field, marks, px, py, side) {
    trace.z.forEach((row, i) => row.forEach((share, j) => {
      const [x, y] = [px(j) - side / 2 + .5, py(i) - side / 2 + .5];
      const mixed = share === null ? "var(--faint)" : `color-mix(in srgb, var(--heat) ${(100 * share).toFixed(0)}%, var(--paper))`;
      field.append(el("rect", { x, y, width: side - 1, height: side - 1 }, { fill: mixed }));
      const ink = share !== null && share > .66 ? "var(--paper)" : "var(--ink)";
      field.append(label(px(j), py(i) + 5, trace.text[i][j], { "text-anchor": "middle", "font-size": trace.textfont.size }));
      field.lastChild.style.fill = ink;
      marks.push({ x: px(j), y: py(i), box: [x, y, x + side, y + side], text: trace.hovertext[i][j] });
    }));
  }

  function series(trace, field, marks, px, py, fitsX, fitsY) {
    const places = trace.x.map((v, i) => (v === null || !fitsX(v) || !fitsY(trace.y[i]) ? null : [px(v), py(trace.y[i])]));
    if (trace.mode.includes("lines")) {
      const parts = [[]];
      for (const place of places) place ? parts.at(-1).push(place) : parts.push([]);
      const style = { stroke: trace.line.color, strokeWidth: trace.line.width, strokeDasharray: DASHES[trace.line.dash] ?? "", fill: "none", strokeLinejoin: "round" };
      const first = trace.mode.includes("markers") ? parts.slice(0, 1) : parts; // loose marks follow the first gap
      for (const part of first) if (part.length > 1) field.append(el("path", { d: path(part) }, style));
    }
    places.forEach((place, i) => {
      if (!place || !trace.mode.includes("markers")) return;
      for (const [bars, turn] of [[trace.error_y, false], [trace.error_x, true]]) {
        if (!bars || !(bars.array[i] || bars.arrayminus[i])) continue;
        const v = turn ? trace.x[i] : trace.y[i];
        const to = turn ? px : py;
        const low = fitsY(v - bars.arrayminus[i]) || turn ? to(v - bars.arrayminus[i]) : to(v);
        const high = to(v + bars.array[i]);
        const [x, y] = place;
        const d = turn ? `M${low} ${y}H${high}M${low} ${y - 3}v6M${high} ${y - 3}v6` : `M${x} ${low}V${high}M${x - 3} ${low}h6M${x - 3} ${high}h6`;
        field.append(el("path", { d }, { stroke: bars.color, strokeWidth: 1.1, fill: "none" }));
      }
      const shown = mark(...place, trace.marker, trace.marker.opacity);
      if (trace.hoverinfo === "skip") shown.setAttribute("class", "ring");
      field.append(shown);
      const text = Array.isArray(trace.text) ? trace.text[i] : trace.text;
      if (trace.hoverinfo !== "skip") marks.push({ x: place[0], y: place[1], text, custom: trace.customdata?.[i] });
    });
  }

  // Points in space, turned by dragging or by arrow keys.
  function space(node, figure) {
    const view = (node.view ??= { yaw: .7, pitch: .45 });
    const all = figure.data.flatMap((trace) => trace.x.map((x, i) => [x, trace.y[i], trace.z[i]]));
    const middle = [0, 1, 2].map((k) => (Math.min(...all.map((p) => p[k])) + Math.max(...all.map((p) => p[k]))) / 2);
    const reach = Math.max(1e-9, ...all.map((p) => Math.hypot(...p.map((v, k) => v - middle[k]))));
    node.append(legend(figure));
    const [width, height] = [node.clientWidth, node.clientHeight - node.firstChild.offsetHeight];
    const svg = el("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", class: "turning" });
    const paint = () => {
      const [cy, sy, cp, sp] = [Math.cos(view.yaw), Math.sin(view.yaw), Math.cos(view.pitch), Math.sin(view.pitch)];
      const r = .46 * Math.min(width, height);
      const place = ([a, b, c]) => {
        const [u, v] = [cy * a - sy * b, sy * a + cy * b];
        return [width / 2 + r * u, height / 2 - r * (cp * c - sp * v), sp * c + cp * v];
      };
      const group = el("g");
      for (const [i, name] of ["component 1", "component 2", "component 3"].entries()) {
        const [x, y] = place([0, 1, 2].map((k) => (k === i ? 1 : 0)));
        group.append(el("path", { class: "grid-line", d: `M${width / 2} ${height / 2}L${x} ${y}` }), label(x, y, name, { class: "reference" }));
      }
      const points = figure.data.flatMap((trace) => trace.x.map((x, i) => [...place([x, trace.y[i], trace.z[i]].map((v, k) => (v - middle[k]) / reach)), trace.marker]));
      for (const [x, y, , marker] of points.sort((p, q) => q[2] - p[2])) group.append(mark(x, y, { ...marker, size: 7 }, .85));
      svg.replaceChildren(group);
    };
    let from = null;
    svg.addEventListener("pointerdown", (event) => { from = [event.clientX, event.clientY]; svg.setPointerCapture(event.pointerId); });
    svg.addEventListener("pointerup", () => { from = null; });
    svg.addEventListener("pointermove", (event) => {
      if (!from) return;
      view.yaw += (event.clientX - from[0]) / 120;
      view.pitch += (event.clientY - from[1]) / 120;
      from = [event.clientX, event.clientY];
      paint();
    });
    node.onkeydown = ({ key, ...event }) => {
      const turn = { ArrowLeft: [-.15, 0], ArrowRight: [.15, 0], ArrowUp: [0, -.15], ArrowDown: [0, .15] }[key];
      if (!turn) return;
      view.yaw += turn[0];
      view.pitch += turn[1];
      paint();
    };
    paint();
    node.append(svg);
  }

  function paint(node) {
    if (!node.figure || !node.clientWidth) return;
    node.replaceChildren();
    (node.figure.data[0]?.type === "scatter3d" ? space : plane)(node, node.figure);
    node.drawn = node.clientWidth;
  }

  const resized = new ResizeObserver((entries) => {
    for (const { target } of entries) if (target.clientWidth !== target.drawn) paint(target);
  });

  // Draws when the node has a size: at once, or when the fold that it is in is opened.
  function draw(node, figure) {
    node.figure = figure;
    node.drawn = undefined;
    paint(node);
    resized.observe(node);
  }

  return { draw, html };
})();
