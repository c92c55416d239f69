// Draws the charts of the page from the data in it, and makes them reachable: mouse, keyboard, light, dark, paper.
"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const places = [...document.querySelectorAll(".chart")];
  const root = document.documentElement;
  const wantsDark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null; // the reader's own choice of theme
  let drawn = []; // { plot, chart, place, full: [min, max], clock: number of its axis of time }

  // --- figures as people read them -------------------------------------------------------------------------------------------
  const digits = (value) => {
    const size = Math.abs(value);
    return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(2);
  };
  const trimmed = (value) => String(+value.toPrecision(12));
  const grouped = (value) => Math.abs(value) >= 10000 ? value.toLocaleString("en-US", { maximumFractionDigits: 0 }) : trimmed(value);
  const scaled = (value, steps) => {
    const [unit, factor] = steps.find(([, factor]) => Math.abs(value) >= factor) || steps[steps.length - 1];
    const shown = digits(value / factor);
    return (shown.includes(".") ? shown.replace(/\.?0+$/, "") : shown) + " " + unit;
  };
  const TIMES = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]];
  const BYTES = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]];
  const show = (value, unit) => {
    if (value == null) return "";
    if (unit === "ns") return value === 0 ? "0" : scaled(value, TIMES);
    if (unit === "bytes") return scaled(value, BYTES);
    if (unit === "one in") return value <= 1 ? "all" : "1 in " + grouped(Math.round(value));
    if (unit === "count") return grouped(value >= 100 ? Math.round(value) : +value.toPrecision(3));
    return trimmed(value);
  };

  // --- colours -----------------------------------------------------------------------------------------------------------------
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const colour = (at) => css("--c" + at);
  // The second sign beside colour: no two lines of a chart have the same dashes.
  const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [14, 4], [1, 4], [6, 2, 2, 2]];
  // Colours are eight: lines of the same colour have other dashes.
  const dashes = (nth) => DASHES[(nth + Math.floor(nth / 8)) % DASHES.length];
  const isDark = () => chosen ?? wantsDark.matches;

  // --- axes ---------------------------------------------------------------------------------------------------------------------
  const axis = (of, side) => {
    const isX = side === "x";
    const all = {
      font: "12px system-ui, sans-serif", stroke: css("--faint"), size: isX ? 34 : 76,
      grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1, size: 6 },
    };
    if (of.label && of.unit !== "s") Object.assign(all, { label: of.label, labelSize: 22, labelGap: 2, labelFont: "13px system-ui, sans-serif" });
    if (of.unit === "s") {
      all.values = (_, splits) => splits.map((value) => trimmed(value) + " s");
      all.space = 70;
      return all;
    }
    // Steps that are round in bytes: 2 MiB, not 2,000,000.
    if (of.unit === "bytes" && !of.log) all.incrs = Array.from({ length: 60 }, (_, power) => 2 ** power);
    // Only full factors have a name where axes are logarithmic; uPlot leaves the others empty.
    all.values = (_, splits) => splits.map((value) => value == null ? "" : show(value, of.unit));
    return all;
  };
  const scaleOf = (of) => ({ time: false, distr: of.log ? 3 : 1, log: of.unit === "bytes" ? 2 : 10 });
  // A linear axis of amounts begins at nothing, so that heights compare.
  const amounts = (_, min, max) => [Math.min(0, min), max > 0 ? max * 1.06 : 1];

  // --- zoom: all time axes move together -------------------------------------------------------------------------------------------
  const isTime = (chart) => chart.x.unit === "s";
  const fullOf = (chart) => chart.range || [chart.xs[0], chart.xs[chart.xs.length - 1]];
  // Charts over time begin and end together. Times that have nothing in common are of different clocks, such as of two boots.
  const clocks = [], clockOf = new Map();
  for (const chart of charts.filter(isTime).sort((one, other) => fullOf(one)[0] - fullOf(other)[0])) {
    const [begin, end] = fullOf(chart), last = clocks[clocks.length - 1];
    if (!last || begin > last[1]) clocks.push([begin, end]);
    else last[1] = Math.max(last[1], end);
    clockOf.set(chart, clocks.length - 1);
  }
  let isMoving = false;
  const move = (from, min, max) => {
    if (isMoving) return;
    isMoving = true;
    for (const one of drawn) {
      if (one === from || (isTime(one.chart) && one.clock === from.clock)) zoom(one, min, max);
    }
    isMoving = false;
  };
  const zoom = ({ plot, chart }, min, max) => {
    if (chart.shape !== "points" && chart.kind === "lines") plot.setData(binned(chart, min, max, plot.width / 6), false);
    plot.setScale("x", { min, max });
  };
  const keys = (event, one) => {
    const { min, max } = one.plot.scales.x;
    const [low, high] = one.full, span = max - min;
    const go = (lower, upper) => {
      event.preventDefault();
      const lowest = Math.max(low, Math.min(lower, high - (upper - lower)));
      move(one, lowest, Math.min(high, lowest + (upper - lower)));
    };
    if (one.chart.x.log) return;
    if (event.key === "+" || event.key === "=") go(min + span / 4, max - span / 4);
    else if (event.key === "-") go(min - span / 2, max + span / 2);
    else if (event.key === "ArrowLeft") go(min - span / 5, max - span / 5);
    else if (event.key === "ArrowRight") go(min + span / 5, max + span / 5);
    else if (event.key === "0" || event.key === "Escape") go(low, high);
  };

  // --- lines --------------------------------------------------------------------------------------------------------------------------
  // Steps are joined until each is wide enough to see, and stacked if they are amounts. All are equally long, so that a mean is a rate
  // still. Of a level that must not fall, the lowest counts.
  const binned = (chart, min, max, most) => {
    const { xs, lines } = chart, steps = xs.length - 1;
    const width = (xs[steps] - xs[0]) / steps || 1;
    const visible = Math.max(1, Math.min(steps, (max - min) / width));
    const join = Math.max(1, Math.ceil(visible / most));
    const bins = Math.ceil(steps / join);
    const begins = Array.from({ length: bins + 1 }, (_, bin) => xs[Math.min(bin * join, steps)]);
    const isStacked = chart.shape === "stacked", isLowest = chart.shape === "lowest";
    let below = new Array(bins + 1).fill(0);
    const sums = lines.map(({ ys }) => {
      const sum = below.slice();
      for (let bin = 0; bin < bins; bin++) {
        const end = Math.min(steps, (bin + 1) * join);
        let all = 0, least = Infinity;
        for (let at = bin * join; at < end; at++) {
          all += ys[at] || 0;
          least = Math.min(least, ys[at] ?? Infinity);
        }
        sum[bin] += isLowest ? least : all / (end - bin * join);
      }
      sum[bins] = sum[bins - 1];
      if (isStacked) below = sum;
      return sum;
    });
    return [begins, ...sums];
  };
  const linesOf = (chart) => {
    const isStacked = chart.shape === "stacked", isPoints = chart.shape === "points";
    const data = !isPoints ? binned(chart, ...fullOf(chart), 150) : [chart.xs, ...chart.lines.map(({ ys }) => ys)];
    const series = chart.lines.map(({ name, colour: at }, nth) => {
      const stroke = colour(at);
      const one = { label: name, stroke, width: 2, value: (plot, value, at, index) => {
        if (index == null || value == null) return "";
        // Of a stack, what this one adds.
        const below = isStacked && at > 1 ? plot.data[at - 1][index] : 0;
        return show(value - below, chart.y.unit);
      } };
      if (isPoints) {
        return { ...one, dash: dashes(nth), points: { show: true, size: 8, fill: css("--paper"), stroke } };
      }
      if (!isStacked) {
        return { ...one, dash: dashes(nth), paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } };
      }
      return { ...one, width: 0, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false }, fill: stroke };
    });
    const options = {
      scales: { x: scaleOf(chart.x), y: { ...scaleOf(chart.y), ...(chart.y.log ? {} : { range: amounts }) } },
      axes: [axis(chart.x, "x"), axis(chart.y, "y")],
      series: [{ label: chart.x.label, value: (_, value) => show(value, chart.x.unit) }, ...series],
      legend: { markers: { width: 0, fill: (_, at) => colour((chart.lines[at - 1] || chart.lines[chart.bands[(at - 1 - chart.lines.length) >> 1].line]).colour) } },
      height: isPoints ? 300 : 200,
    };
    // Behind a line, from the least to the most that it may be.
    for (const { line, least, most } of chart.bands || []) {
      const { name, colour: at } = chart.lines[line], stroke = colour(at);
      const value = (_, value) => value == null ? "" : show(value, chart.y.unit);
      const end = (what) => ({ label: `${name}, ${what}`, stroke, width: 1, dash: [2, 4], value, points: { show: true, size: 4, stroke } });
      options.series.push(end("most"), end("least"));
      data.push(most, least);
      options.bands = [...options.bands || [], { series: [data.length - 2, data.length - 1], fill: stroke + "33" }];
    }
    if (isStacked) options.bands = chart.lines.slice(1).map((_, at) => ({ series: [at + 2, at + 1] }));
    return { options, data };
  };

  const shortened = (name, most) => name.length > most ? name.slice(0, most - 1) + "…" : name;

  // --- lanes: who, from when to when --------------------------------------------------------------------------------------------------
  const LANE = 26;
  const lanesOf = (chart, place) => {
    const [from, to] = chart.range, count = chart.names.length;
    const rects = (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      const half = bbox.height / count * 0.36;
      for (const [lane, begin, end, at] of chart.spans) {
        const left = plot.valToPos(begin, "x", true), right = plot.valToPos(end, "x", true);
        const middle = plot.valToPos(count - lane - 0.5, "y", true);
        ctx.fillStyle = colour(at);
        // What is too short to see is shown all the same.
        ctx.fillRect(left, middle - half, Math.max(right - left, 2 * devicePixelRatio), 2 * half);
      }
      ctx.restore();
    };
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    const point = (plot) => {
      const { left, top } = plot.cursor;
      const found = left < 0 ? null : nearest(plot, left, top);
      tip.hidden = !found;
      if (!found) return;
      tip.textContent = found[4];
      tip.style.left = Math.min(plot.over.offsetLeft + left + 14, Math.max(0, place.clientWidth - 430)) + "px";
      tip.style.top = plot.over.offsetTop + top + 16 + "px";
    };
    const nearest = (plot, left, top) => {
      const lane = Math.floor(count - plot.posToVal(top, "y"));
      let best = null, distance = 5;
      for (const span of chart.spans) {
        if (span[0] !== lane) continue;
        const begin = plot.valToPos(span[1], "x"), end = plot.valToPos(span[2], "x");
        const away = left < begin ? begin - left : left > end ? left - end : 0;
        if (away < distance) [best, distance] = [span, away];
      }
      return best;
    };
    place.append(tip);
    const y = axis({ label: "", unit: "" }, "y");
    const options = {
      scales: { x: { time: false }, y: { range: [0, count] } },
      axes: [axis(chart.x, "x"), {
        ...y, stroke: css("--ink"), splits: () => chart.names.map((_, at) => count - at - 0.5),
        values: () => chart.names.map((name) => shortened(name, leftRoom() / 7.2)), grid: { show: false }, ticks: { show: false }, gap: 6,
      }],
      series: [{}, { show: true, paths: () => null, points: { show: false } }],
      legend: { show: false },
      hooks: { drawClear: [], draw: [rects], setCursor: [point] },
      height: 58 + LANE * count,
    };
    return { options, data: [[from, to], [0, 0]] };
  };

  // --- all of it ------------------------------------------------------------------------------------------------------------------------
  // Pixels left of charts over time, so that they stand below each other, and right of any, where half of the last name of an axis stands.
  const leftRoom = () => innerWidth < 620 ? 96 : 150;
  const RIGHT = 40;
  const draw = (dark) => {
    const kept = []; // of each clock
    for (const { plot, clock } of drawn) {
      if (clock !== undefined) kept[clock] = [plot.scales.x.min, plot.scales.x.max];
    }
    drawn.forEach(({ plot }) => plot.destroy());
    drawn = [];
    root.classList.toggle("dark", dark);
    places.forEach((place, at) => {
      const chart = charts[at];
      place.querySelectorAll(".tip").forEach((tip) => tip.remove());
      const { options, data } = chart.kind === "lanes" ? lanesOf(chart, place) : linesOf(chart);
      const hasTime = isTime(chart);
      if (hasTime) options.axes[1].size = leftRoom() - (options.axes[1].labelSize ?? 0);
      options.padding = [null, RIGHT, null, null];
      const one = { chart, place, clock: clockOf.get(chart) };
      options.width = Math.max(240, place.clientWidth);
      options.cursor = {
        drag: { x: !chart.x.log, y: false, setScale: false }, y: false, points: { show: chart.shape === "points" },
        ...(hasTime ? { sync: { key: "time" + one.clock, setSeries: false } } : {}),
        bind: { dblclick: () => () => { move(one, ...one.full); return null; } },
      };
      options.hooks = { ...(options.hooks || {}), setSelect: [(plot) => {
        const { left, width } = plot.select;
        if (width > 4) move(one, plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
        plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      }] };
      one.plot = new uPlot(options, data, place);
      one.full = clocks[one.clock] || fullOf(chart);
      // A legend's entry hides its line; by keyboard, too.
      place.querySelectorAll(".u-legend .u-series").forEach((entry, nth) => {
        if (nth === 0 || chart.shape === "stacked") return;
        entry.tabIndex = 0;
        entry.setAttribute("role", "button");
        entry.onkeydown = (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          event.stopPropagation();
          one.plot.setSeries(nth, { show: !one.plot.series[nth].show });
        };
      });
      drawn.push(one);
    });
    for (const one of drawn.filter(({ clock }) => clock !== undefined)) zoom(one, ...(kept[one.clock] || one.full));
  };

  places.forEach((place, at) => {
    place.addEventListener("keydown", (event) => event.target === place && keys(event, drawn[at]));
  });
  const hint = places.find((_, at) => isTime(charts[at]));
  if (hint) {
    const says = document.createElement("p");
    says.className = "keys";
    says.textContent = "Drag to zoom into a time, double-click to see all; by keyboard: Tab to a picture, then + - ← → and 0.";
    hint.before(says);
  }
  const blocks = [...document.querySelectorAll(".copyable")];
  // What is wider than the page is moved by keyboard, too.
  const reach = () => blocks.forEach((block) => {
    if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
    else block.removeAttribute("tabindex");
  });
  reach();
  addEventListener("toggle", reach, true); // a part is unfolded
  for (const block of blocks) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "copy";
    button.onclick = async () => {
      const table = block.querySelector("table");
      const cells = (row) => [...row.cells].map((cell) => cell.textContent.replace(/\s+/g, " ")).join("\t");
      const text = table ? [...table.rows].map(cells).join("\n") + "\n" : block.querySelector("pre").textContent;
      await copy(text);
      button.textContent = "copied";
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    };
    block.before(button);
  }
  const copy = async (text) => {
    // A page opened from a disk may have no clipboard of its own.
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };
  const theme = document.getElementById("theme");
  theme.hidden = false;
  theme.onclick = () => { chosen = !isDark(); draw(isDark()); };
  wantsDark.addEventListener("change", () => draw(isDark()));
  // Paper is white.
  addEventListener("beforeprint", () => draw(false));
  addEventListener("afterprint", () => draw(isDark()));
  let resizing = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(resizing);
    resizing = requestAnimationFrame(() => {
      drawn.forEach(({ plot, place }) => plot.setSize({ width: Math.max(240, place.clientWidth), height: plot.height }));
      reach();
    });
  });
  draw(isDark());
  root.dataset.drawn = String(drawn.length);
})();
