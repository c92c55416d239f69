// What the page keeps: machines that run in workers (worker.js), the scenario, and the moment. The other scripts draw it.
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
const pages = (count) => `${grouped(count)} page${count === 1 ? "" : "s"}`;
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
  it.onmessage = ({ data: { id, at, told, error } }) => {
    const { done, failed, heard } = waiting.get(id);
    if (at !== undefined) return heard?.(at);
    waiting.delete(id);
    error === undefined ? done(told) : failed(new Error(error));
  };
  // A worker that the browser ends answers nothing any more.
  it.onerror = ({ message }) => {
    waiting.forEach(({ failed }) => failed(new Error(`the machine stopped: ${message || "its worker has ended"}\nhelp: load this page again`)));
    waiting.clear();
  };
  /** Calls the worker. `heard` is told how far a long run has come. */
  const call = (name, args = {}, heard) => new Promise((done, failed) => {
    waiting.set(++last, { done, failed, heard });
    it.postMessage({ id: last, name, args }, args.spare ? [args.spare] : []);
  });
  return { call, end: () => it.terminate() };
};

let about = null, opened = null;
let machines = []; // { letter, call, end, last: what it looks like, canvas, boxes, total, cursor, element }
let isRunning = false, isBusy = false;
let rows = []; // { t, of: [figures of each machine] }: the charts' history
let places = [0]; // moments that Back goes to
let forkedAt = null, shownGroup = "/", files = null;
const draws = []; // milliseconds of the page's own work per frame
let said = ""; // what came of the last button, until the next one
const state = { scenario: "", variant: "", set: [], seed: null };

const fail = (error) => {
  $("error").textContent = error ? error.message : "";
  $("error").hidden = !error;
};
/** One thing at a time; a failure is shown. */
const doing = async (work) => {
  if (isBusy) return;
  isBusy = true;
  said = "";
  try {
    await work();
    fail(null);
  } catch (error) {
    isRunning = false;
    fail(error);
    // A machine that has stopped is back at an earlier moment.
    if (opened && machines.length) await all("look").then(() => redraw(true), () => {});
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
  $("state").textContent = isRunning ? "running" : !goesOn() && ended ? ended === "complete" ? "All tasks are done." : ended === "time up" ? "The time of the scenario is over." : ended.split("\n")[0] : said || "paused";
  $("time").disabled = isRunning;
};

// --- opening ---------------------------------------------------------------------------------------------------------------------
/** Settings that the form has a field for. */
const isOfForm = (setting) => ["kernel.lists", "kernel.profile", "kernel.version", $("memory").dataset.key].includes(setting.split("=")[0]);
const settings = () => {
  // Others came by a link or a tour, and stay.
  const set = state.set.filter((setting) => !isOfForm(setting));
  const policy = $("policy").value, version = $("version").value, memory = $("memory").value.trim();
  if (["classic", "mglru"].includes(policy)) set.push(`kernel.lists=${policy}`);
  else if (policy) set.push(`kernel.profile=${policy}`);
  if (version) set.push(`kernel.version="${version}"`);
  if (memory) set.push(`${$("memory").dataset.key}=${memory}`);
  return set;
};
/** Opens a scenario; what is not among `wanted` is as before. If it has an error, the machine that is there stays. */
const open = async (wanted = {}, { at = 0, wrote = [] } = {}) => {
  const { scenario: name, variant, set, seed } = { ...state, ...wanted };
  const scenario = DATA.scenarios.find((one) => one.name === name);
  if (!scenario) throw new Error(`scenario: found \`${name}\`, expected one of this page`);
  if (!machines.length) {
    const it = { letter: "A", ...worker() };
    about = await it.call("load", { module: await unpack() });
    machines = [it];
    element(it);
    choices();
  }
  const told = await machines[0].call("open", { scenario, variant, set, seed, at, wrote, objects: objects() });
  while (machines.length > 1) close(machines.pop());
  forkedAt = null;
  machines[0].cursor = null;
  Object.assign(state, { scenario: name, variant, set, seed });
  opened = told.opened;
  rows = [];
  places = [0];
  closeStory();
  took(machines[0], told);
  note();
  setup();
  redraw(true);
  written();
  if (files) await showFiles(opened.groups.includes(shownGroup) ? shownGroup : opened.groups.at(-1));
  root.dataset.ready = state.scenario;
  controls();
  hash();
};
const took = (machine, told) => {
  // The words of the frame before are given back: megabytes of garbage a frame would take longer than the drawing.
  machine.spare = machine.last?.words.buffer;
  machine.last = told;
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
  const example = opened.objects[0];
  $("page-find").placeholder = example ? `${example.name}:${Math.min(17, example.pages - 1)}` : "";
  $("seed").value = state.seed ?? "";
  $("seed").placeholder = opened.seed;
  const others = state.set.filter((setting) => !isOfForm(setting));
  $("question").textContent = `${opened.question} (${opened.policy}${others.length ? `; changed: ${others.join(", ")}` : ""})`;
  $("time").max = opened.until_ns ?? 0;
};

// --- running ---------------------------------------------------------------------------------------------------------------------
const ENDLESS = 18e18; // nanoseconds: later than any run ends
const all = (name, args) => Promise.all(machines.map(async (one) => {
  const { spare } = one;
  one.spare = null;
  took(one, await one.call(name, { ...args, objects: objects(), spare }));
}));
const FAST = 1000;
const loop = async () => {
  let then = performance.now(), gained = 1e6, filesAt = 0, filesTook = 0;
  let to = now();
  while (isRunning && goesOn()) {
    const began = performance.now(), speed = Number($("speed").value), before = now();
    // A tab in the background, or a slow machine, owes nothing.
    const passed = Math.min(began - then, 100) * 1e6;
    then = began;
    // Two machines stay together: neither runs further ahead than the slower one comes.
    if (speed >= FAST) to = machines.length > 1 ? before + Math.max(1e6, 1.5 * gained) : ENDLESS;
    else to = Math.max(before, Math.min(to, before + passed * speed)) + passed * speed;
    await all("advance", { to, budget: 14 });
    gained = now() - before;
    await new Promise(requestAnimationFrame);
    note();
    redraw();
    // A read is done on a copy of the machine, which takes long for a large one.
    if (files && began - filesAt > Math.max(700, 20 * filesTook)) {
      filesAt = began;
      await read();
      filesTook = performance.now() - began;
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
  written();
  if (files) read().catch(fail);
  hash();
};
const batch = () => doing(async () => {
  places.push(now());
  const counted = () => {
    const { vmstat: { pgscan_anon, pgscan_file, pgsteal_anon, pgsteal_file } } = machines[0].last.status;
    return [pgscan_anon + pgscan_file, pgsteal_anon + pgsteal_file];
  };
  const [scanned, reclaimed] = counted();
  took(machines[0], await machines[0].call("batch", { objects: objects() }));
  // The first machine steps; the other runs to the same moment.
  if (machines.length > 1) took(machines[1], await machines[1].call("advance", { to: machines[0].last.next, budget: 5000, objects: objects() }));
  const [scannedNow, reclaimedNow] = counted();
  said = scannedNow > scanned ? `Reclaim scanned ${pages(scannedNow - scanned)} and freed ${grouped(reclaimedNow - reclaimed)}.` : "No page was scanned up to here: reclaim has nothing to do yet.";
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
    closeStory();
    rows = rows.filter(({ t }) => t <= to);
    places = places.filter((place) => place < to);
    if (!places.length) places = [0];
  }
  settled();
});
const back = () => go(places.filter((place) => place < now()).pop() ?? 0);
const split = async () => {
  const given = await machines[0].call("state");
  const it = { letter: "B", ...worker() };
  try {
    took(it, await it.call("adopt", { state: given, objects: objects() }));
  } catch (error) {
    it.end();
    throw error;
  }
  machines.push(it);
  element(it);
  forkedAt = now();
  built = "";
};
const fork = () => doing(async () => {
  if (machines.length > 1) await unfork();
  else await split();
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
