// The page of `pageout play`: controls, pictures and tables around machines that run in workers (worker.js).
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const DATA = JSON.parse($("data").textContent); // { scenarios: [{ name, text }], chosen, tours }
  const WORKER = URL.createObjectURL(new Blob([$("worker").textContent], { type: "text/javascript" }));
  const root = document.documentElement;
  const wantsDark = matchMedia("(prefers-color-scheme: dark)");
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // --- figures as people read them ---------------------------------------------------------------------------------------------
  const grouped = (value) => Math.round(value).toLocaleString("en-US");
  const short = (value) => {
    const [unit, factor] = [["G", 1e9], ["M", 1e6], ["k", 1e3], ["", 1]].find(([, factor]) => Math.abs(value) >= factor) || ["", 1];
    return +(value / factor).toPrecision(3) + unit;
  };
  const time = (ns) => {
    const [unit, factor] = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]].find(([, factor]) => ns >= factor) || ["s", 1e9];
    return +(ns / factor).toPrecision(4) + " " + unit;
  };
  const seconds = (ns) => (ns / 1e9).toFixed(6) + " s";
  const bytes = (pages) => {
    const size = pages * 4096;
    const [unit, factor] = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]].find(([, factor]) => size >= factor) || ["KiB", 1024];
    return +(size / factor).toPrecision(3) + " " + unit;
  };
  const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]);

  // --- machines ------------------------------------------------------------------------------------------------------------------
  /** The module: base64 of gzip. */
  const unpack = () => {
    const packed = Uint8Array.from(atob($("wasm").textContent), (sign) => sign.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  };

  /** A worker, with calls that answer. */
  const worker = () => {
    const it = new Worker(WORKER), waiting = new Map();
    let last = 0;
    it.onmessage = ({ data: { id, told, error } }) => {
      const { done, failed } = waiting.get(id);
      waiting.delete(id);
      error === undefined ? done(told) : failed(new Error(error));
    };
    const call = (name, args = {}) => new Promise((done, failed) => {
      waiting.set(++last, { done, failed });
      it.postMessage({ id: last, name, args });
    });
    return { call, end: () => it.terminate() };
  };

  let about = null, opened = null;
  let machines = []; // { letter, call, end, last: what it looks like, canvas, cells, boxes, cursor, element }
  let isRunning = false, isBusy = false;
  let rows = []; // { t, of: [figures of each machine] }: the charts' history
  let places = [0]; // moments that Back goes to
  let forkedAt = null, shownGroup = "/", files = null;
  const draws = []; // milliseconds of the page's own work per frame
  const state = { scenario: "", variant: "", set: [], seed: null };

  const fail = (error) => {
    $("error").textContent = error ? error.message : "";
    $("error").hidden = !error;
  };
  /** One thing at a time; a failure is shown. */
  const doing = async (work) => {
    if (isBusy) return;
    isBusy = true;
    try {
      await work();
      fail(null);
    } catch (error) {
      isRunning = false;
      fail(error);
    } finally {
      isBusy = false;
      controls();
    }
  };
  const objects = () => $("view").value === "objects";
  const now = () => Math.min(...machines.map(({ last }) => last.next));
  const goesOn = () => machines.some(({ last }) => last.goesOn);

  const controls = () => {
    $("run").textContent = isRunning ? "Pause" : "Run";
    const ends = machines.map(({ last }) => last.status.failed || last.status.ended);
    for (const id of ["batch", "back", "start", "fork"]) $(id).disabled = isRunning || !machines.length;
    $("run").disabled = !machines.length || (!isRunning && !goesOn());
    $("batch").disabled ||= !goesOn();
    $("fork").textContent = machines.length > 1 ? "End the fork" : "Fork";
    const ended = ends.find((end) => end);
    $("state").textContent = isRunning ? "running" : !goesOn() && ended ? ended === "complete" ? "All tasks are done." : ended === "time up" ? "The time of the scenario is over." : ended.split("\n")[0] : "paused";
    $("time").disabled = isRunning;
  };

  // --- opening ---------------------------------------------------------------------------------------------------------------------
  const settings = () => {
    const set = [], policy = $("policy").value, version = $("version").value, memory = $("memory").value.trim();
    if (["classic", "mglru"].includes(policy)) set.push(`kernel.lists=${policy}`);
    else if (policy) set.push(`kernel.profile=${policy}`);
    if (version) set.push(`kernel.version="${version}"`);
    if (memory) set.push(`${$("memory").dataset.key}=${memory}`);
    return set;
  };
  const open = async ({ at = 0, wrote = [] } = {}) => {
    machines.slice(1).forEach((one) => close(one));
    machines = machines.slice(0, 1);
    forkedAt = null;
    const scenario = DATA.scenarios.find(({ name }) => name === state.scenario);
    if (!scenario) throw new Error(`link: found scenario \`${state.scenario}\`, expected one of this page`);
    if (!machines.length) {
      const it = { letter: "A", ...worker() };
      about = await it.call("load", { module: await unpack() });
      machines = [it];
      element(it);
      choices();
    }
    const { variant, set, seed } = state;
    const told = await machines[0].call("open", { scenario, variant, set, seed, at, wrote, objects: objects() });
    opened = told.opened;
    rows = [];
    places = [0];
    took(machines[0], told);
    note();
    setup();
    redraw();
    groups();
    if (files) await showFiles(opened.groups.includes(shownGroup) ? shownGroup : opened.groups.at(-1));
    root.dataset.ready = state.scenario;
    controls();
    hash();
  };
  const took = (machine, told) => {
    machine.last = told;
    machine.isNew = true;
  };
  const option = (value, name, is) => `<option value="${escaped(value)}"${is ? " selected" : ""}>${escaped(name)}</option>`;
  const choices = () => {
    const known = about.profiles.map(({ name }) => name);
    $("policy").innerHTML = option("", "the scenario's") + option("classic", "classic (two lists)") + option("mglru", "mglru (generations)") + known.map((name) => option(name, name)).join("");
    $("version").innerHTML = option("", "the scenario's") + about.series.slice().reverse().map((name) => option(name, name)).join("");
  };
  const setup = () => {
    $("scenario").value = state.scenario;
    $("variant").innerHTML = option("", opened.variants.length ? "the unchanged scenario" : "none") + opened.variants.map((name) => option(name, name, name === state.variant)).join("");
    $("variant").disabled = !opened.variants.length;
    const limit = opened.limits[0];
    const key = limit ? `memcg.${limit.path}.memory.max` : opened.nodes.length > 1 ? "machine.node.0.memory" : "machine.memory";
    const of = (prefix) => state.set.find((one) => one.startsWith(prefix + "="))?.slice(prefix.length + 1).replace(/^"|"$/g, "") ?? "";
    $("memory").dataset.key = key;
    $("memory").title = key;
    $("memory").placeholder = limit ? limit.max : bytes(opened.status.zones.filter(({ node }) => node === 0).reduce((sum, zone) => sum + zone.present, 0));
    $("memory").value = of(key);
    $("version").value = of("kernel.version");
    $("policy").value = of("kernel.lists") || of("kernel.profile");
    $("seed").value = state.seed ?? "";
    $("seed").placeholder = opened.seed;
    $("question").textContent = `${opened.question} (${opened.policy})`;
    $("time").max = opened.until_ns ?? 0;
  };

  // --- running ---------------------------------------------------------------------------------------------------------------------
  const all = (name, args) => Promise.all(machines.map(async (one) => took(one, await one.call(name, { ...args, objects: objects() }))));
  const FAST = 1000;
  const loop = async () => {
    let then = performance.now(), gained = 1e6, filesAt = 0;
    let to = now();
    while (isRunning && goesOn()) {
      const began = performance.now(), speed = Number($("speed").value), before = now();
      // A tab in the background, or a slow machine, owes nothing.
      const passed = Math.min(began - then, 100) * 1e6;
      then = began;
      // Two machines stay together: neither runs further ahead than the slower one comes.
      if (speed >= FAST) to = machines.length > 1 ? before + Math.max(1e6, 1.5 * gained) : Number.MAX_SAFE_INTEGER;
      else to = Math.max(before, Math.min(to, before + passed * speed)) + passed * speed;
      await all("advance", { to, budget: 14 });
      gained = now() - before;
      await new Promise(requestAnimationFrame);
      note();
      redraw();
      if (files && began - filesAt > 700) {
        filesAt = began;
        await read();
      }
    }
  };
  const run = () => {
    if (isRunning) {
      isRunning = false;
      return;
    }
    return doing(async () => {
      isRunning = true;
      places.push(now());
      controls();
      await loop();
      isRunning = false;
      settled();
    });
  };
  const pause = async () => {
    isRunning = false;
    while (isBusy) await new Promise((done) => setTimeout(done, 10));
  };
  const settled = () => {
    note();
    redraw(true);
    groups();
    if (files) read();
    hash();
  };
  const batch = () => doing(async () => {
    places.push(now());
    if (machines.length === 1) await all("batch");
    else {
      // The first one steps; the other runs to the same moment.
      took(machines[0], await machines[0].call("batch", { objects: objects() }));
      took(machines[1], await machines[1].call("advance", { to: machines[0].last.next, budget: 5000, objects: objects() }));
    }
    settled();
  });
  /** Runs up to a moment, in view. */
  const forward = async (to, goes = () => true) => {
    const every = Math.max(1, (to - now()) / 150);
    while (goes() && goesOn() && now() < to) {
      const before = now();
      await all("advance", { to: Math.min(to, before + every), budget: 40 });
      await new Promise(requestAnimationFrame);
      note();
      redraw();
      // Between two events there may be nothing for a long time.
      if (now() <= before) break;
    }
    if (goes()) await all("go", { to });
  };
  const go = (to) => doing(async () => {
    if (forkedAt !== null && to < forkedAt) await unfork();
    if (to > now()) {
      places.push(now());
      await forward(to);
    } else {
      await all("go", { to });
      rows = rows.filter(({ t }) => t <= to);
      places = places.filter((place) => place < to);
      if (!places.length) places = [0];
    }
    settled();
  });
  const back = () => go(places.filter((place) => place < now()).pop() ?? 0);
  const fork = () => doing(async () => {
    if (machines.length > 1) await unfork();
    else {
      const given = await machines[0].call("state");
      const it = { letter: "B", ...worker() };
      took(it, await it.call("adopt", { state: given, objects: objects() }));
      machines.push(it);
      element(it);
      forkedAt = now();
      built = "";
    }
    settled();
    if (files) await showFiles(shownGroup);
  });
  const unfork = async () => {
    close(machines.pop());
    forkedAt = null;
    rows.forEach((row) => row.of.length = 1);
    built = "";
  };
  const close = (machine) => {
    machine.end();
    machine.element.remove();
  };

  // --- a link to this moment ---------------------------------------------------------------------------------------------------------
  const linked = () => {
    const all = { s: state.scenario, t: now() };
    if (state.variant) all.variant = state.variant;
    if (state.set.length) all.set = state.set;
    if (state.seed !== null) all.seed = state.seed;
    if ($("view").value !== "lists") all.view = $("view").value;
    if ($("colour").value !== "list") all.colour = $("colour").value;
    if (machines[0].last.writes.length) all.w = machines[0].last.writes.map(({ at, path, value }) => [at, path, value]);
    if (forkedAt !== null) all.fork = { t: forkedAt, w: machines[1].last.writes.filter(({ at }) => at >= forkedAt).map(({ at, path, value }) => [at, path, value]) };
    return "#" + encodeURIComponent(JSON.stringify(all));
  };
  let hashed = "";
  const hash = () => {
    hashed = linked();
    history.replaceState(null, "", hashed);
  };
  const unpacked = (list) => (list || []).map(([at, path, value]) => ({ at, path, value }));
  const restore = async (text) => {
    let given;
    try {
      given = JSON.parse(decodeURIComponent(text.slice(1)));
      if (typeof given.s !== "string") throw new Error();
    } catch {
      throw new Error("link: the part behind # is damaged: found no state of this page\nhelp: copy the link again");
    }
    Object.assign(state, { scenario: given.s, variant: given.variant || "", set: given.set || [], seed: given.seed ?? null });
    $("view").value = given.view || "lists";
    $("colour").value = given.colour || "list";
    const before = given.fork ? given.fork.t : given.t;
    const wrote = unpacked(given.w);
    await open({ at: before || 0, wrote: wrote.filter(({ at }) => at <= before) });
    if (!given.fork) return;
    isBusy = false;
    await fork();
    // The second machine may have been told more at the very moment of the fork.
    for (const [machine, more] of [[machines[0], wrote.filter(({ at }) => at > before)], [machines[1], unpacked(given.fork.w)]]) {
      for (const { at, path, value } of more) {
        await machine.call("go", { to: at, objects: false });
        took(machine, await machine.call("write", { path, value, objects: objects() }));
      }
    }
    await all("go", { to: given.t });
    settled();
  };

  // --- history and charts --------------------------------------------------------------------------------------------------------------
  const ROWS_MAX = 1200;
  const figures = ({ status }) => {
    const stat = status.vmstat, sum = (of) => status.zones.reduce((sum, zone) => sum + zone[of], 0);
    return {
      free: sum("free"), min: sum("min"), low: sum("low"), high: sum("high"),
      usage: status.groups.map(({ usage }) => usage),
      refaults: stat.workingset_refault_anon + stat.workingset_refault_file,
      scanned: stat.pgscan_anon + stat.pgscan_file, reclaimed: stat.pgsteal_anon + stat.pgsteal_file,
      swapped: stat.pswpin + stat.pswpout + (stat.zswpin || 0) + (stat.zswpout || 0), promoted: stat.pgpromote_success,
      demoted: stat.pgdemote_kswapd + stat.pgdemote_direct + (stat.pgdemote_proactive || 0),
      memory: status.groups[0].memory_some_ns, io: status.groups[0].io_some_ns,
      kinds: [stat.nr_active_file, stat.nr_inactive_file, stat.nr_active_anon, stat.nr_inactive_anon], swap: status.swap_used, zswap: status.zswap.stored,
    };
  };
  const note = () => {
    const t = now();
    if (rows.length && rows.at(-1).t >= t) rows = rows.filter((row) => row.t < t);
    rows.push({ t, of: machines.map(({ last }) => figures(last)) });
    if (rows.length > ROWS_MAX) rows = rows.filter((_, at) => at % 2 === 0 || at === rows.length - 1);
    $("clock").textContent = seconds(t);
    const slider = $("time");
    if (!opened.until_ns) slider.max = Math.max(Number(slider.max), t);
    slider.value = t;
    slider.setAttribute("aria-valuetext", seconds(t));
  };
  const rate = (of, which) => (row, at) => {
    // Over an eightieth of what is shown: a batch of reclaim is short, and rates between two frames would only jump.
    const before = rows[Math.max(0, at - Math.max(1, Math.floor(rows.length / 80)))];
    if (!before || !before.of[which]) return null;
    const span = (row.t - before.t) / 1e9;
    return span > 0 ? Math.max(0, of(row.of[which]) - of(before.of[which])) / span : null;
  };
  const POWERS = Array.from({ length: 40 }, (_, power) => 2 ** power);
  let plots = [], built = "";
  const lines = () => {
    const level = (of) => (row) => of(row.of[0]);
    const twice = (name, of, colour, make) => {
      const both = [{ name, value: make(of, 0), colour }];
      if (machines.length > 1) both.push({ name: `${name}, B`, value: make(of, 1), colour, dash: [6, 3] });
      return both;
    };
    const plain = (of, which) => (row) => row.of[which] ? of(row.of[which]) : null;
    const paths = machines[0].last.status.groups.map(({ path }) => path);
    const limited = opened.limits.length > 0;
    const any = (of) => rows.some((row) => row.of.some((one) => of(one) > 0));
    const charts = [];
    charts.push({ title: "Free memory and its watermarks", unit: bytes, lines: [
      ...twice("free", ({ free }) => free, "--better", plain),
      { name: "high", value: level(({ high }) => high), colour: "--c2", dash: [2, 3] }, { name: "low", value: level(({ low }) => low), colour: "--c7", dash: [2, 3] }, { name: "min", value: level(({ min }) => min), colour: "--worse", dash: [2, 3] },
    ] });
    charts.push({ title: "Reclaim and refaults, pages per second", unit: short, lines: [
      ...twice("refaults", ({ refaults }) => refaults, "--worse", rate), ...twice("scanned", ({ scanned }) => scanned, "--c7", rate), ...twice("reclaimed", ({ reclaimed }) => reclaimed, "--better", rate),
      ...(any(({ swapped }) => swapped) ? twice("swapped in and out", ({ swapped }) => swapped, "--c3", rate) : []),
      ...(any(({ promoted, demoted }) => promoted + demoted) ? [...twice("promoted", ({ promoted }) => promoted, "--c2", rate), ...twice("demoted", ({ demoted }) => demoted, "--c4", rate)] : []),
    ] });
    const shares = paths.map((path, at) => ({ path, at })).filter(({ path }) => path !== "/" || paths.length === 1).slice(0, 6);
    charts.push({ title: limited ? "Memory of groups" : "Memory of groups (charged)", unit: bytes, lines: shares.flatMap(({ path, at }, nth) => twice(path, ({ usage }) => usage[at], "--c" + [2, 3, 4, 6, 9, 7][nth], plain)) });
    charts.push({ title: "Memory by kind", unit: bytes, lines: [
      ["active file", "--c5", []], ["inactive file", "--c5", [3, 3]], ["active anon", "--c6", []], ["inactive anon", "--c6", [3, 3]],
    ].map(([name, colour, dash], at) => ({ name, colour, dash, value: level(({ kinds }) => kinds[at]) })).concat(
      any(({ swap }) => swap) ? [{ name: "on swap", colour: "--c7", value: level(({ swap }) => swap) }] : [], any(({ zswap }) => zswap) ? [{ name: "in zswap", colour: "--c3", value: level(({ zswap }) => zswap) }] : []) });
    charts.push({ title: "Pressure: share of time in which a task waits (some)", unit: (value) => +(value * 100).toPrecision(3) + " %", lines: [
      ...twice("memory", ({ memory }) => memory / 1e9, "--worse", rate), ...twice("I/O", ({ io }) => io / 1e9, "--c7", rate),
    ] });
    return charts;
  };
  /** Draws all charts, or the next one of them. */
  const chart = (all) => {
    const charts = lines(), width = Math.max(260, $("charts").firstElementChild?.clientWidth || Math.min(600, $("charts").clientWidth));
    const key = JSON.stringify([charts.map(({ title, lines }) => [title, lines.map(({ name }) => name)]), root.className, width]);
    const data = ({ lines }) => [rows.map(({ t }) => t / 1e9), ...lines.map(({ value }) => rows.map(value))];
    if (key === built) {
      if (all) plots.forEach((plot, at) => plot.setData(data(charts[at])));
      else {
        chart.turn = (chart.turn ?? 0) % plots.length;
        plots[chart.turn].setData(data(charts[chart.turn]));
        chart.turn++;
      }
      return;
    }
    built = key;
    plots.forEach((plot) => plot.destroy());
    $("charts").innerHTML = charts.map(({ title }) => `<figure><figcaption>${escaped(title)}</figcaption></figure>`).join("");
    plots = charts.map(({ title, unit, lines }, at) => {
      const axis = { font: "12px system-ui, sans-serif", stroke: css("--faint"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1, size: 5 } };
      const place = $("charts").children[at];
      place.setAttribute("aria-label", title);
      return new uPlot({
        width: Math.max(260, place.clientWidth), height: 170, scales: { x: { time: false }, y: { range: (_, min, max) => [0, max > 0 ? max * 1.06 : 1] } },
        axes: [{ ...axis, size: 30, values: (_, all) => all.map((value) => +value.toPrecision(6) + " s") }, { ...axis, size: 66, incrs: unit === bytes ? POWERS : undefined, values: (_, all) => all.map((value) => value === 0 ? "0" : unit(value)) }],
        series: [{ label: "time", value: (_, value) => value == null ? "" : value.toFixed(4) + " s" }, ...lines.map(({ name, colour, dash }) => ({ label: name, stroke: css(colour), width: 1.6, dash, points: { show: false }, value: (_, value) => value == null ? "" : unit(value) }))],
        legend: { live: false }, cursor: { drag: { x: false, y: false } },
      }, data(charts[at]), place);
    });
  };

  // --- pictures of pages ------------------------------------------------------------------------------------------------------------------
  const element = (machine) => {
    const box = document.createElement("div");
    box.className = "machine";
    box.innerHTML = `<h3></h3><canvas tabindex="0" role="application"></canvas><p class="hover" aria-live="polite"></p><details class="sums"><summary>Sizes of lists</summary><div class="copyable" tabindex="0" role="region" aria-label="Sizes of lists, a table"></div></details>`;
    $("machines").append(box);
    machine.element = box;
    machine.canvas = box.querySelector("canvas");
    machine.canvas.setAttribute("aria-label", `Pages of machine ${machine.letter}. Arrow keys move from page to page, Enter shows the story of a page. The sizes of lists are in a table below.`);
    machine.cursor = null;
    const at = (event) => {
      const frame = machine.canvas.getBoundingClientRect(), scale = machine.canvas.width / frame.width;
      return cellAt(machine, (event.clientX - frame.left) * scale, (event.clientY - frame.top) * scale);
    };
    machine.canvas.addEventListener("mousemove", (event) => hover(machine, at(event)));
    machine.canvas.addEventListener("click", (event) => select(machine, at(event)));
    machine.canvas.addEventListener("keydown", (event) => {
      const cell = machine.cursor ?? -1, box = machine.boxes.find(({ first, count }) => cell >= first && cell < first + count);
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: box?.columns ?? 1, ArrowUp: -(box?.columns ?? 1) }[event.key];
      if (event.key === "Enter") return select(machine, machine.cursor);
      if (!step) return;
      event.preventDefault();
      machine.cursor = Math.max(0, Math.min(machine.cells.length - 1, cell + step));
      hover(machine, machine.cursor);
      paint(machine);
    });
    box.querySelector("details").addEventListener("toggle", () => sums(machine));
  };
  const cellAt = (machine, x, y) => {
    for (const { top, bottom, columns, size, first, count } of machine.boxes || []) {
      if (y < top || y >= bottom) continue;
      const column = Math.floor(x / size), cell = Math.floor((y - top) / size) * columns + column;
      return column < columns && cell < count ? first + cell : null;
    }
    return null;
  };
  /** Which page a square is: by its folio's first frame, or by its object. */
  const which = (machine, cell) => {
    const { last: { words }, cells, boxes } = machine;
    if (!objects()) return { frame: words[2 * cells[cell]] };
    const at = boxes.findIndex(({ first, count }) => cell >= first && cell < first + count);
    return { object: [at, cell - boxes[at].first] };
  };
  let asked = 0;
  const hover = async (machine, cell) => {
    const place = machine.element.querySelector(".hover"), mine = ++asked;
    if (cell === null || cell === undefined) return;
    if (isRunning) {
      const box = machine.boxes.find(({ first, count }) => cell >= first && cell < first + count);
      place.textContent = box ? box.name : "";
      return;
    }
    try {
      const told = await machine.call("page", { which: which(machine, cell) });
      if (mine === asked) place.textContent = described(told);
    } catch (error) {
      place.textContent = error.message;
    }
  };
  const described = ({ page, place }) => {
    const marks = ["referenced", "active", "workingset", "accessed"].filter((mark) => place[mark]);
    return `${page}: ${place.list || place.name}${marks.length ? ` (${marks.join(", ")})` : ""}${place.tier !== null && place.tier !== undefined ? `, tier ${place.tier}` : ""}`;
  };
  const select = async (machine, cell) => {
    if (cell === null || cell === undefined) return;
    await pause();
    if (cell >= machine.cells.length) return;
    machine.cursor = cell;
    paint(machine);
    const told = await machine.call("page", { which: which(machine, cell) });
    machine.element.querySelector(".hover").textContent = described(told);
    await story(machine, told);
  };
  let teller = null;
  const story = async (machine, told) => {
    teller?.end();
    $("page").hidden = false;
    $("page-name").textContent = `Machine ${machine.letter}, ${described(told)}.`;
    $("story").textContent = "Runs again from the start, and notes what happens to this page ...";
    const it = teller = worker();
    try {
      const given = await machine.call("state");
      given.memory = null;
      const { text } = await it.call("story", { state: given, page: told.page, width: 100 });
      if (teller === it) $("story").textContent = text;
    } catch (error) {
      if (teller === it) $("story").textContent = error.message;
    }
    it.end();
  };

  // Colours are words of a picture: red is the lowest byte.
  const parse = (colour) => {
    const [r, g, b] = colour.match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));
    return [r, g, b];
  };
  const mix = (one, other, share) => one.map((part, at) => Math.round(part * share + other[at] * (1 - share)));
  const word = ([r, g, b]) => (255 << 24 | b << 16 | g << 8 | r) >>> 0;
  let theme = null;
  const colours = () => {
    if (theme) return theme;
    const named = (name) => parse(css(name));
    const paper = named("--paper"), ink = named("--ink");
    theme = {
      paper, ink, file: named("--c5"), anon: named("--c6"), other: named("--c7"), worse: named("--worse"), soft: named("--soft"), line: named("--line"),
      zswap: named("--c3"), dirty: named("--c3"), writeback: named("--c6"), reading: named("--c4"),
      groups: [7, 2, 3, 4, 6, 9, 5].map((at) => named("--c" + at)), fast: named("--c2"), slow: named("--c9"),
    };
    return theme;
  };
  /** How warm a list is, from 0 to 1. */
  const warmth = (list, lists) => {
    if (list.place === "active" || list.place === "list") return 1;
    if (list.place === "inactive") return 0.3;
    if (list.place !== "generation") return 0;
    const same = lists.filter((one) => one.place === "generation" && one.group === list.group && one.node === list.node && one.kind === list.kind && one.pages > 0).map(({ seq }) => seq);
    const [oldest, youngest] = [Math.min(...same), Math.max(...same)];
    return youngest === oldest ? 1 : 0.25 + 0.75 * (list.seq - oldest) / (youngest - oldest);
  };
  const tint = (list, lists) => {
    const c = colours(), by = $("colour").value;
    if (by === "group") return mix(c.groups[list.group % c.groups.length], c.paper, 0.45 + 0.55 * warmth(list, lists));
    if (by === "node") return mix(opened.nodes.find(({ node }) => node === list.node)?.fast === false ? c.slow : c.fast, c.paper, 0.45 + 0.55 * warmth(list, lists));
    if (by === "state") return mix(c.other, c.paper, 0.35);
    if (list.place === "none") return mix(c.reading, c.paper, 0.8);
    if (list.place === "unevictable") return c.other;
    return mix(list.kind === "anon" ? c.anon : c.file, c.paper, 0.22 + 0.78 * warmth(list, lists));
  };
  const legend = () => {
    const c = colours(), by = $("colour").value, entries = [];
    const show = (colour, name) => entries.push(`<span><i style="background:rgb(${colour})"></i>${escaped(name)}</span>`);
    const status = machines[0].last.status;
    if (by === "list") {
      const lists = machines[0].last.frame.lists, has = (kind) => lists.some((list) => list.kind === kind), generations = lists.some(({ place }) => place === "generation");
      for (const [kind, colour] of [["file", c.file], ["anon", c.anon]]) {
        if (!has(kind)) continue;
        show(colour, generations ? `${kind}, youngest generation` : `${kind}, active`);
        show(mix(colour, c.paper, generations ? 0.42 : 0.45), generations ? `${kind}, oldest` : `${kind}, inactive`);
      }
      show(mix(c.reading, c.paper, 0.8), "on no list");
    } else if (by === "group") status.groups.slice(0, 10).forEach(({ path }, at) => show(c.groups[at % c.groups.length], path));
    else if (by === "node") opened.nodes.forEach(({ node, fast }) => show(fast ? c.fast : c.slow, `node ${node}, ${fast ? "fast" : "slow"}`));
    else {
      show(c.dirty, "dirty");
      show(c.writeback, "under writeback");
      show(c.reading, "being read");
      show(mix(c.other, c.paper, 0.35), "clean");
    }
    if (objects()) {
      show(mix(c.worse, c.paper, 0.3), "evicted");
      if (opened.has_swap) show(mix(c.ink, c.paper, 0.45), "on swap");
      if (status.zswap.stored) show(c.zswap, "in zswap");
      if (machines.length > 1) show(c.worse, "in this machine's memory only");
    } else show(mix(c.ink, c.paper, 0.5), "a darker square: referenced");
    const text = entries.join("");
    if (legend.last !== text) $("legend").innerHTML = legend.last = text;
  };
  const named = (list, status) => {
    const group = status.groups[list.group]?.path ?? "/", node = opened.nodes.length > 1 ? ` node ${list.node}` : "";
    const place = { none: "on no list", generation: `${list.kind} generation ${list.seq}`, list: `${list.kind}, the policy's list`, unevictable: `${list.kind} unevictable` }[list.place] || `${list.place} ${list.kind}`;
    return `${group}${node}: ${place}`;
  };
  const LABEL = 17;
  const paint = (machine) => {
    const { canvas, last: { frame, words, status } } = machine, c = colours();
    const dots = Math.min(2, devicePixelRatio || 1), width = Math.round(canvas.clientWidth * dots);
    if (!width) return;
    const label = Math.round(LABEL * dots), isObjects = objects(), byState = $("colour").value === "state";
    const parts = isObjects ? frame.objects : frame.lists.filter(({ pages }) => pages > 0);
    const total = parts.reduce((sum, { pages }) => sum + pages, 0);
    const high = Math.min(560, Math.max(240, innerHeight * 0.55)) * dots;
    const size = Math.max(2, Math.min(Math.round(11 * dots), Math.floor(Math.sqrt(width * high / Math.max(1, total)))));
    const columns = Math.max(1, Math.floor(width / size)), gap = size >= 4 ? 1 : 0, side = size - gap;
    let top = 0, first = 0;
    machine.boxes = parts.map((part) => {
      const name = isObjects ? `${part.name}${part.all > part.pages ? " (first part)" : ""}` : named(part, status);
      const box = { name, part, top: top + label, bottom: top + label + Math.ceil(part.pages / columns) * size, columns, size, first, count: part.pages };
      top = box.bottom + Math.round(3 * dots);
      first += part.pages;
      return box;
    });
    const height = Math.max(label, top);
    if (canvas.width !== width || canvas.height !== height) {
      [canvas.width, canvas.height] = [width, height];
      machine.image = null;
    }
    const context = canvas.getContext("2d", { alpha: false });
    machine.image ??= context.createImageData(width, height);
    const dot = new Uint32Array(machine.image.data.buffer);
    dot.fill(word(c.paper));
    const plain = frame.lists.map((list) => word(tint(list, frame.lists)));
    const used = frame.lists.map((list) => word(mix(tint(list, frame.lists), c.ink, 0.84)));
    const states = [word(c.dirty), word(c.writeback), word(c.reading)];
    const square = (box, cell, colour) => {
      let from = (box.top + Math.floor(cell / columns) * size) * width + cell % columns * size;
      for (let line = 0; line < side; line++, from += width) {
        for (let at = from; at < from + side; at++) dot[at] = colour;
      }
    };
    if (machine.cells?.length !== total) machine.cells = new Uint32Array(total);
    const cells = machine.cells;
    if (isObjects) {
      const away = [word(c.soft), word(mix(c.worse, c.paper, 0.3)), word(mix(c.ink, c.paper, 0.45)), word(c.zswap)], only = word(c.worse), none = word(mix(c.reading, c.paper, 0.8));
      const other = machines.length > 1 ? machines.find((one) => one !== machine).last : null;
      machine.boxes.forEach((box, nth) => {
        const from = box.part.at, otherFrom = other?.frame.objects[nth]?.at;
        for (let cell = 0; cell < box.count; cell++) {
          const place = words[from + cell];
          cells[box.first + cell] = from + cell;
          const isHereOnly = otherFrom !== undefined && place >= 4 && other.words[otherFrom + cell] < 4;
          square(box, cell, isHereOnly ? only : place < 4 ? away[place] : plain[(place >> 3) - 1] ?? none);
        }
      });
    } else {
      const at = new Map(frame.lists.map((list, nth) => [list, nth]));
      for (const box of machine.boxes) {
        const list = at.get(box.part);
        const [calm, warm] = [plain[list], used[list]];
        for (let cell = 0, folio = box.part.at; cell < box.count; folio++) {
          const bits = words[2 * folio + 1];
          let colour = bits & 1 ? warm : calm;
          if (byState) colour = bits & 8 ? states[0] : bits & 16 ? states[1] : bits & 32 ? states[2] : calm;
          for (let pages = 1 << (bits >> 9 & 15); pages > 0 && cell < box.count; pages--, cell++) {
            cells[box.first + cell] = folio;
            square(box, cell, colour);
          }
        }
      }
    }
    context.putImageData(machine.image, 0, 0);
    context.fillStyle = `rgb(${c.ink})`;
    context.font = `${12 * dots}px system-ui, sans-serif`;
    for (const box of machine.boxes) context.fillText(`${box.name}: ${grouped(box.count)} page${box.count === 1 ? "" : "s"} (${bytes(box.count)})`, 1, box.top - Math.round(4 * dots), width);
    if (machine.cursor !== null) {
      const box = machine.boxes.find(({ first, count }) => machine.cursor >= first && machine.cursor < first + count);
      if (box) {
        const cell = machine.cursor - box.first;
        context.strokeStyle = `rgb(${c.ink})`;
        context.lineWidth = 2 * dots;
        context.strokeRect(cell % columns * size - dots, box.top + Math.floor(cell / columns) * size - dots, side + 2 * dots, side + 2 * dots);
      }
    }
  };
  const sums = (machine) => {
    const details = machine.element.querySelector("details");
    if (!details.open) return;
    const { frame, status } = machine.last;
    const lists = frame.lists.filter(({ pages }) => pages > 0);
    details.querySelector("div").innerHTML = table(["list", "pages", "size"], lists.map((list) => [named(list, status), grouped(list.pages), bytes(list.pages)]));
  };
  const table = (heads, body) => `<table><thead><tr>${heads.map((head, at) => `<th scope="col"${at ? ' class="n"' : ""}>${escaped(head)}</th>`).join("")}</tr></thead><tbody>${body.map((cells) => `<tr>${cells.map((cell, at) => at ? `<td class="n">${cell.html ?? escaped(cell)}</td>` : `<th scope="row">${cell.html ?? escaped(cell)}</th>`).join("")}</tr>`).join("")}</tbody></table>`;

  // --- tables ---------------------------------------------------------------------------------------------------------------------------------
  const PARTS = [["running", "--better"], ["in reclaim", "--worse"], ["waiting for a device", "--c7"], ["throttled", "--c3"], ["waiting for a CPU", "--c4"]];
  const tasks = () => {
    const body = machines.flatMap(({ letter, last: { status } }) => status.tasks.slice(0, 24).map((task) => {
      // Reclaim that runs is CPU time as well, and reclaim that waits is a delay or a wait for a device.
      const parts = [Math.max(0, task.cpu_ns - task.reclaim_ns), task.reclaim_ns, task.io_ns, task.delays_ns, task.cpu_wait_ns];
      const sum = parts.reduce((sum, part) => sum + part, 0) || 1;
      const bar = parts.map((part, at) => `<i style="width:${(100 * part / sum).toFixed(2)}%;background:var(${PARTS[at][1]})"></i>`).join("");
      const told = parts.map((part, at) => [part, PARTS[at][0]]).filter(([part]) => part > sum / 200).map(([part, name]) => `${(100 * part / sum).toFixed(0)} % ${name}`).join(", ");
      const name = machines.length > 1 ? `${letter}: ${task.name}` : task.name;
      return [`${name}${task.killed ? " (killed)" : task.ended ? " (done)" : ""}`, grouped(task.accesses), task.accesses ? (100 * task.hits / task.accesses).toFixed(2) + " %" : "", { html: `<span class="times" role="img" aria-label="${escaped(told || "nothing yet")}">${bar}</span>` }, told];
    }));
    $("tasks").innerHTML = `<p class="legend">${PARTS.map(([name, colour]) => `<span><i style="background:var(${colour})"></i>${name}</span>`).join("")}</p>` + table(["task", "accesses", "hits", "time", "shares"], body);
  };
  const groups = () => {
    const { status, frame } = machines[0].last;
    const of = (group, test) => frame.lists.filter((list) => list.group === group && test(list)).reduce((sum, { pages }) => sum + pages, 0);
    const body = status.groups.map((group, at) => [
      { html: `<button type="button" class="group" data-group="${escaped(group.path)}" aria-label="Kernel files of ${escaped(group.path)}">${escaped(group.path)}</button>` },
      bytes(group.usage), bytes(of(at, ({ kind }) => kind === "file")), bytes(of(at, ({ kind }) => kind === "anon")), bytes(group.swap), grouped(group.refaults), time(group.memory_some_ns), time(group.memory_full_ns),
    ]);
    const active = document.activeElement?.dataset?.group;
    $("groups").innerHTML = table(["group (click: its kernel files)", "charged", "file, here", "anon, here", "swap", "refaults", "memory stall, some", "full"], body);
    if (active) $("groups").querySelector(`[data-group="${CSS.escape(active)}"]`)?.focus();
  };
  const COUNTERS = ["accesses", "pgscan_file", "pgscan_anon", "pgsteal_file", "pgsteal_anon", "pgscan_kswapd", "workingset_refault_file", "workingset_refault_anon", "workingset_activate_file", "pgactivate", "pgdeactivate", "pswpin", "pswpout", "zswpin", "zswpout", "pgpromote_success", "pgdemote_kswapd", "pgmajfault", "nr_dirtied", "nr_written", "oom_kill"];
  const differences = () => {
    $("difference").hidden = machines.length < 2;
    if (machines.length < 2) return;
    const [a, b] = machines.map(({ last: { status } }) => ({ ...status.vmstat, accesses: status.accesses }));
    const body = COUNTERS.filter((name) => a[name] || b[name]).map((name) => {
      const difference = b[name] - a[name], share = a[name] ? ` (${difference > 0 ? "+" : ""}${(100 * difference / a[name]).toFixed(1)} %)` : "";
      return [name, grouped(a[name]), grouped(b[name]), difference ? { html: `<b>${difference > 0 ? "+" : ""}${grouped(difference)}${share}</b>` } : "="];
    });
    $("differences").innerHTML = table([`since the start; forked at ${seconds(forkedAt)}`, "A", "B", "B - A"], body);
  };

  // --- kernel files ------------------------------------------------------------------------------------------------------------------------------
  const showFiles = async (group) => {
    shownGroup = group;
    files = await machines[0].call("files", { group });
    $("files").hidden = false;
    $("files-h").textContent = `Kernel files of ${group}, and of the machine`;
    const name = (path) => path.split("/").pop();
    const sets = (test) => `<optgroup label="${escaped(group)}">${files.group.filter(test).map(({ path }) => option(path, name(path))).join("")}</optgroup><optgroup label="machine">${files.machine.filter(test).map(({ path }) => option(path, path)).join("")}</optgroup>`;
    const before = [$("knob-path").value, $("read-path").value].map(name);
    $("knob-path").innerHTML = sets(({ write }) => write);
    $("read-path").innerHTML = sets(({ read }) => read);
    const pick = (id, wanted) => {
      const found = [...$(id).options].find(({ value }) => name(value) === wanted);
      if (found) $(id).value = found.value;
    };
    pick("knob-path", before[0] || "memory.max");
    pick("read-path", before[1] || "memory.stat");
    $("knob-of").innerHTML = machines.map(({ letter }, at) => option(at, letter, at === machines.length - 1)).join("");
    await knob();
    await read();
  };
  const knob = async () => {
    const path = $("knob-path").value, found = [...files.group, ...files.machine].find((file) => file.path === path);
    $("knob-doc").textContent = found?.doc ?? "";
    if (!found?.read) {
      $("knob-value").value = "";
      return;
    }
    const [told] = await machines[Number($("knob-of").value)].call("read", { paths: [path] });
    $("knob-value").value = (told.text ?? "").trim().split("\n")[0];
  };
  const read = async () => {
    const path = $("read-path").value;
    const told = await Promise.all(machines.map((one) => one.call("read", { paths: [path] })));
    const place = $("file-text");
    while (place.children.length > told.length) place.lastChild.remove();
    while (place.children.length < told.length) place.append(Object.assign(document.createElement("pre"), { tabIndex: 0 }));
    told.forEach(([{ text, error }], at) => place.children[at].textContent = (machines.length > 1 ? `# machine ${machines[at].letter}\n` : "") + (text ?? error));
  };
  const write = (path, value, of) => doing(async () => {
    const machine = machines[of];
    const told = await machine.call("write", { path, value, objects: objects() });
    took(machine, told);
    settled();
    $("written").innerHTML = `<p>As events of a scenario, what was written in machine ${machine.letter}:</p><pre tabindex="0">${escaped(told.toml.trim())}</pre>`;
  });

  // --- tours ---------------------------------------------------------------------------------------------------------------------------------------
  let tour = null, turn = 0; // of whom the stop is that acts: a later one ends it
  const leave = () => {
    tour = null;
    turn++;
    $("guide").hidden = true;
    $("tour").value = "";
  };
  const stop = async (nth) => {
    const { title, steps } = tour.of;
    const step = steps[nth], mine = ++turn;
    tour.nth = nth;
    delete $("guide").dataset.done;
    $("guide").hidden = false;
    $("guide-h").textContent = title;
    $("guide-say").textContent = step.say;
    $("guide-look").textContent = step.look;
    $("guide-at").textContent = `${nth + 1} of ${steps.length}`;
    $("guide-next").textContent = nth + 1 < steps.length ? "Next" : "Done";
    for (const action of step.do) {
      await act(action, mine);
      if (mine !== turn) return;
    }
    $("guide").dataset.done = nth;
  };
  const act = async (action, mine) => {
    await pause();
    if (mine !== turn) return;
    if (action.open) {
      Object.assign(state, { scenario: action.open, variant: action.variant || "", set: action.set || [], seed: null });
      await doing(() => open());
    }
    if (action.view) $("view").value = action.view;
    if (action.colour) $("colour").value = action.colour;
    if (action.speed) $("speed").value = action.speed;
    if (action.view || action.colour) await doing(async () => { await all("look"); redraw(true); });
    if (action.to) await doing(async () => {
      await forward(action.to, () => mine === turn);
      settled();
    });
    if (action.fork && machines.length < 2) await fork();
    if (action.write) await write(...action.write);
    if (action.group) await showFiles(action.group);
    if (action.run) run();
  };

  // --- all of it, drawn ------------------------------------------------------------------------------------------------------------------------------
  let chartedAt = 0;
  const redraw = (all) => {
    const began = performance.now();
    for (const machine of machines) {
      const heading = machines.length > 1 ? `Machine ${machine.letter}, forked at ${seconds(forkedAt)}` : `${opened.policy}`;
      const place = machine.element.querySelector("h3");
      if (place.textContent !== heading) place.textContent = heading;
      paint(machine);
    }
    // Charts and tables are read, not watched: a few times a second, one at a time.
    if (all) {
      chart(true);
      tables();
    } else if (began - chartedAt > 50) {
      chartedAt = began;
      redraw.turn = ((redraw.turn ?? 0) + 1) % (plots.length + 1);
      redraw.turn ? chart(false) : tables();
    }
    draws.push(performance.now() - began);
    if (draws.length > 600) draws.shift();
  };
  const tables = () => {
    legend();
    tasks();
    differences();
    machines.forEach(sums);
  };

  const dress = () => {
    root.classList.toggle("dark", dress.chosen ?? wantsDark.matches);
    theme = null;
    legend.last = built = "";
    if (machines.length && opened && machines[0].last) redraw(true);
  };

  const listen = () => {
    $("setup-form").addEventListener("submit", async (event) => {
      event.preventDefault();
      leave();
      await pause();
      const seed = $("seed").value.trim();
      await doing(async () => {
        if (seed && !/^[0-9]+$/.test(seed)) throw new Error(`seed: found \`${seed}\`, expected a number from 0`);
        Object.assign(state, { variant: $("variant").value, set: settings(), seed: seed ? Number(seed) : null });
        await open();
      });
    });
    $("scenario").addEventListener("change", async () => {
      leave();
      await pause();
      Object.assign(state, { scenario: $("scenario").value, variant: "", set: [], seed: null });
      doing(() => open());
    });
    $("run").addEventListener("click", run);
    $("batch").addEventListener("click", batch);
    $("back").addEventListener("click", back);
    $("start").addEventListener("click", () => go(0));
    $("fork").addEventListener("click", fork);
    $("time").addEventListener("change", () => go(Math.round(Number($("time").value))));
    $("link").addEventListener("click", async () => {
      hash();
      try {
        await navigator.clipboard.writeText(location.href);
        $("state").textContent = "The link is copied.";
      } catch {
        $("state").textContent = "The link is in the address bar.";
      }
    });
    for (const id of ["view", "colour"]) $(id).addEventListener("change", () => isRunning ? 0 : doing(async () => {
      machines.forEach((one) => one.cursor = null);
      await all("look");
      redraw(true);
      hash();
    }));
    $("page-close").addEventListener("click", () => $("page").hidden = true);
    $("groups").addEventListener("click", (event) => {
      const group = event.target.closest("[data-group]")?.dataset.group;
      if (group) showFiles(group).then(() => $("files").scrollIntoView({ block: "nearest" }), fail);
    });
    $("knob-path").addEventListener("change", () => knob().catch(fail));
    $("knob-of").addEventListener("change", () => knob().catch(fail));
    $("read-path").addEventListener("change", () => read().catch(fail));
    $("knob").addEventListener("submit", async (event) => {
      event.preventDefault();
      const goesOnRunning = isRunning;
      await pause();
      await write($("knob-path").value, $("knob-value").value.trim(), Number($("knob-of").value));
      if (goesOnRunning) run();
    });
    $("tour").addEventListener("change", () => {
      const of = DATA.tours.find(({ title }) => title === $("tour").value);
      if (!of) return leave();
      tour = { of, nth: 0 };
      stop(0);
    });
    $("guide-next").addEventListener("click", () => tour.nth + 1 < tour.of.steps.length ? stop(tour.nth + 1) : leave());
    $("guide-end").addEventListener("click", leave);
    addEventListener("keydown", (event) => {
      if (event.target.closest("input, select, textarea, button, summary, a") || event.ctrlKey || event.metaKey || event.altKey) return;
      const work = { " ": run, ".": batch, ",": back }[event.key];
      if (!work) return;
      event.preventDefault();
      work();
    });
    addEventListener("hashchange", async () => {
      if (location.hash === hashed) return;
      await pause();
      doing(() => restore(location.hash));
    });
    let resized = 0;
    addEventListener("resize", () => {
      clearTimeout(resized);
      resized = setTimeout(() => opened && redraw(true), 100);
    });
    $("theme").hidden = false;
    $("theme").addEventListener("click", () => {
      dress.chosen = !root.classList.contains("dark");
      dress();
    });
    wantsDark.addEventListener("change", dress);
  };

  $("scenario").innerHTML = DATA.scenarios.map(({ name }) => option(name, name)).join("");
  $("tour").innerHTML = option("", "choose ...") + DATA.tours.map(({ title }) => option(title, title)).join("");
  dress();
  listen();
  controls();
  state.scenario = DATA.chosen;
  doing(() => location.hash.length > 1 ? restore(location.hash) : open()).then(() => {
    // A damaged link still leaves a machine to look at.
    if (!opened) Object.assign(state, { scenario: DATA.chosen, variant: "", set: [], seed: null });
  });
  // For tests and for the curious.
  window.pageout = {
    draws, machines: () => machines, now, open: (more) => doing(async () => { Object.assign(state, more); await open(); }), go, batch, fork, run, pause, write,
    result: (of = 0) => machines[of].call("result"), hash: linked,
    finish: () => doing(async () => { while (goesOn()) await all("advance", { to: Number.MAX_SAFE_INTEGER, budget: 200 }); settled(); }),
  };
})();
