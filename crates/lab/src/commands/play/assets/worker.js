// The machine's side of the page: runs in a worker, owns one WebAssembly instance, and answers the page's messages in order.
//
// All state of a machine is in the memory of its module. A copy of it is a snapshot; going back is putting one back and running on from there.
"use strict";
let compiled = null, wasm = null;
const text = new TextDecoder(), bytes = new TextEncoder();
let snapshots = []; // { at, memory }, by time; the first is the beginning
let writes = []; // { at, path, value }: files that the user wrote, in order
let pending = []; // the same, of later moments: they are written when the run comes there
let next = 0, goesOn = true, spent = 0, slice = 1e6, keeps = true;
let hasStopped = false; // a trap ended a call, so that the memory is that of no moment
let tell = null; // told now and then how far a long run has come
const ENDLESS = 18e18; // nanoseconds, which an integer of 64 bits holds
const SNAPSHOT_MS = 400, SNAPSHOTS_BYTES = 192 << 20, PROGRESS_MS = 250;

const fresh = (memory) => {
  wasm = new WebAssembly.Instance(compiled, {}).exports;
  if (!memory) return;
  const missing = memory.byteLength - wasm.memory.buffer.byteLength;
  if (missing > 0) wasm.memory.grow(missing / 65536);
  new Uint8Array(wasm.memory.buffer).set(new Uint8Array(memory));
};
const answer = () => text.decode(new Uint8Array(wasm.memory.buffer, wasm.play_answer(), wasm.play_answer_length()));
const ask = (request) => {
  const coded = bytes.encode(JSON.stringify(request));
  try {
    // The buffer may be another one after the call.
    const place = wasm.play_request(coded.length);
    new Uint8Array(wasm.memory.buffer, place, coded.length).set(coded);
    wasm.play_ask();
  } catch (trap) {
    hasStopped = true;
    // An allocation that fails has no words of its own.
    const size = Math.round(wasm.memory.buffer.byteLength / (1 << 20));
    throw new Error(`the machine stopped: ${answer() || `${trap.message}, with ${size} MiB of memory`}\nhelp: a page has at most 4,096 MiB of memory; use less memory in the scenario, or \`pageout run\``);
  }
  const told = JSON.parse(answer());
  if (told.error) throw new Error(told.error);
  return told;
};
const copy = () => wasm.memory.buffer.slice(0);

const remember = () => {
  // At the moment of a write there may be two states; a replay begins before it.
  if (!keeps || snapshots.some((one) => one.at === next) || writes.some((one) => one.at === next)) return;
  try {
    snapshots.push({ at: next, memory: copy() });
  } catch {
    // The browser has no memory for it: going back takes longer.
    snapshots = snapshots.slice(0, 1);
    return;
  }
  snapshots.sort((one, other) => one.at - other.at);
  // Every other one goes, but never the first.
  const all = () => snapshots.reduce((sum, one) => sum + one.memory.byteLength, 0);
  while (snapshots.length > 2 && all() > SNAPSHOTS_BYTES) snapshots = snapshots.filter((_, at) => at % 2 === 0);
};
const note = (told) => {
  if (told.next_ns != null) next = told.next_ns;
  goesOn = told.goes_on;
  return told;
};

/** Runs up to `end` for at most `budget` milliseconds, and writes on the way what is pending. */
const advance = (end, budget) => {
  const until = performance.now() + budget;
  for (;;) {
    const due = pending[0]?.at ?? Infinity;
    runTo(Math.min(end, due), until - performance.now());
    if (due > end || next < due) break;
    const { path, value } = pending[0];
    ask({ write: { path, value } });
    writes.push(pending.shift());
  }
  if (spent > SNAPSHOT_MS) {
    spent = 0;
    remember();
  }
};
/** Slices of virtual time are as long as some milliseconds of work. */
const runTo = (end, budget) => {
  const to = Math.min(Math.round(end), ENDLESS);
  const begun = performance.now();
  let now = begun, told = begun;
  while (goesOn && next < to && now - begun < budget) {
    const until = Math.min(to, next + slice);
    note(ask({ run: { to: until } }));
    const ended = performance.now(), took = ended - now;
    if (took < 1.5 && until - slice < to) slice = Math.min(slice * 2, 1e11);
    else if (took > 4) slice = Math.max(Math.floor(slice / 2), 1000);
    spent += took;
    now = ended;
    if (tell && now - told > PROGRESS_MS) tell(told = now);
  }
};

/** Goes to a moment, forwards or backwards. What was written later is forgotten, or with `keeps` written again when the run comes there. */
const go = (to, keeps) => {
  if (to >= next) return advance(to, Infinity);
  const later = keeps ? [...writes.filter((one) => one.at > to), ...pending] : [];
  const from = snapshots.filter((one) => one.at <= to).pop();
  snapshots = snapshots.filter((one) => one.at <= to);
  fresh(from.memory);
  [next, goesOn] = [from.at, true];
  // A snapshot at the moment of a write is from before it.
  pending = writes.filter((one) => one.at >= from.at && one.at <= to);
  writes = writes.filter((one) => one.at < from.at);
  advance(to, Infinity);
  pending = later;
};

const write = (path, value) => {
  const before = copy();
  try {
    const told = ask({ write: { path, value } });
    writes.push({ at: next, path, value });
    // Snapshots at this moment have not seen it.
    snapshots = snapshots.filter((one, nth) => nth === 0 || one.at < next);
    return told;
  } catch (error) {
    fresh(before);
    throw error;
  }
};

/** The frame and the figures, to be handed over. */
const look = (objects, spare) => {
  const begun = performance.now();
  const frame = ask({ frame: { objects } });
  const shown = new Uint32Array(wasm.memory.buffer, wasm.play_frame(), wasm.play_frame_length());
  const words = spare?.byteLength >= shown.byteLength ? new Uint32Array(spare, 0, shown.length) : shown.slice();
  if (words.buffer === spare) words.set(shown);
  return { next, goesOn, frame, words, status: ask("status"), writes, ms: performance.now() - begun };
};

/** Goes back to the last snapshot after a trap. */
const recover = () => {
  hasStopped = false;
  const last = snapshots.at(-1);
  if (!last) return;
  next = Infinity;
  go(last.at);
};

/** Runs from the beginning of `state` up to its moment, with a page followed, and a file written at the beginning if there is one. */
const again = ({ state, page, written }) => {
  compiled = state.compiled;
  [writes, pending, next, goesOn] = [[], state.writes, 0, true];
  snapshots = [{ at: 0, memory: state.begin }];
  keeps = false;
  fresh(state.begin);
  ask({ follow: { page } });
  if (written) ask({ write: written });
  advance(state.next, Infinity);
};

const commands = {
  async load({ module }) {
    compiled = await WebAssembly.compile(module);
    fresh();
    return ask("about");
  },
  open({ scenario, set, variant, seed, at, wrote, objects }) {
    // A scenario with an error leaves the machine that is there.
    const before = { wasm, snapshots, writes, pending, next, goesOn };
    try {
      fresh();
      [snapshots, writes, pending, next, goesOn, spent, slice] = [[], [], wrote || [], 0, true, 0, 1e6];
      // What placement could have been at best is a figure of reports, and takes long at each look; no counter depends on it.
      const asked = ["machine.hindsight=false", ...set];
      const opened = ask({ open: { name: scenario.name, text: scenario.text, set: asked, variant: variant || null, seed: seed ?? null } });
      snapshots = [{ at: 0, memory: copy() }];
      if (at > 0 || pending.length) advance(at, Infinity);
      else next = opened.status.next_ns ?? 0;
      return { opened, ...look(objects) };
    } catch (error) {
      ({ wasm, snapshots, writes, pending, next, goesOn } = before);
      hasStopped = false;
      throw error;
    }
  },
  advance({ to, budget, objects, spare }) {
    advance(to, budget);
    return look(objects, spare);
  },
  batch({ objects }) {
    let told;
    const begun = performance.now();
    do told = note(ask("batch")); while (told.goes_on && !told.scanned && performance.now() - begun < 3000);
    return { scanned: told.scanned, ...look(objects) };
  },
  go({ to, keeps, objects }) {
    go(to, keeps);
    return look(objects);
  },
  look: ({ objects }) => look(objects),
  page: ({ which }) => ask({ page: which }),
  files: ({ group }) => ask({ files: { group } }),
  // A reader flushes statistics, which no other moment of the run must notice.
  read({ paths }) {
    const before = copy();
    const told = ask({ read: { paths } });
    fresh(before);
    return told;
  },
  write({ path, value, objects }) {
    const told = write(path, value);
    return { ...told, ...look(objects) };
  },
  result() {
    const before = copy();
    const told = ask("result");
    fresh(before);
    return told;
  },
  /** All that another worker needs to go on from here, or to tell a story from the beginning. */
  state: () => ({ compiled, begin: snapshots[0].memory, memory: copy(), next, goesOn, writes, pending }),
  adopt({ state, objects }) {
    compiled = state.compiled;
    snapshots = [{ at: 0, memory: state.begin }];
    [writes, pending, next, goesOn, spent, slice] = [state.writes, state.pending, state.next, state.goesOn, 0, 1e6];
    fresh(state.memory);
    return look(objects);
  },
  /** The story of a page up to the moment of the state: the run from its beginning, with that page followed. */
  story({ state, page, width }) {
    again({ state, page });
    return ask({ story: { width } });
  },
  /** The same run, but with a file written at its beginning: where the page is then, and what the run cost. */
  attempt({ state, page, written }) {
    again({ state, page, written });
    return { ...ask({ story: { width: 80 } }), status: ask("status") };
  },
};

onmessage = async ({ data: { id, name, args } }) => {
  tell = () => postMessage({ id, at: next });
  try {
    const told = await commands[name](args);
    postMessage({ id, told }, told.words ? [told.words.buffer] : []);
  } catch (error) {
    try {
      if (hasStopped) recover();
    } catch {
      // What is shown stays; another scenario can be opened.
    }
    postMessage({ id, error: error.message });
  }
};
