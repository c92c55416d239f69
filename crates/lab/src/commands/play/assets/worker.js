// The machine's side of the page: runs in a worker, owns one WebAssembly instance, and answers the page's messages in order.
//
// All state of a machine is in the memory of its module. A copy of it is a snapshot; going back is putting one back and running on from there.
"use strict";
let compiled = null, wasm = null;
const text = new TextDecoder(), bytes = new TextEncoder();
let snapshots = []; // { at, memory }, by time; the first is the beginning
let writes = []; // { at, path, value }: files that the user wrote, in order
let next = 0, goesOn = true, spent = 0, slice = 1e6, keeps = true;
const SNAPSHOT_MS = 400, SNAPSHOTS_BYTES = 192 << 20;

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
  // The buffer may be another one after the call.
  const place = wasm.play_request(coded.length);
  new Uint8Array(wasm.memory.buffer, place, coded.length).set(coded);
  try {
    wasm.play_ask();
  } catch (trap) {
    throw new Error("the machine stopped: " + (answer() || trap));
  }
  const told = JSON.parse(answer());
  if (told.error) throw new Error(told.error);
  return told;
};
const copy = () => wasm.memory.buffer.slice(0);

const remember = () => {
  // At the moment of a write there may be two states; a replay begins before it.
  if (!keeps || snapshots.some((one) => one.at === next) || writes.some((one) => one.at === next)) return;
  snapshots.push({ at: next, memory: copy() });
  snapshots.sort((one, other) => one.at - other.at);
  // Every other one goes, but never the first.
  const all = () => snapshots.reduce((sum, one) => sum + one.memory.byteLength, 0);
  while (snapshots.length > 3 && all() > SNAPSHOTS_BYTES) snapshots = snapshots.filter((_, at) => at % 2 === 0);
};
const note = (told) => {
  if (told.next_ns != null) next = told.next_ns;
  goesOn = told.goes_on;
  return told;
};

/** Runs up to `to` for at most `budget` milliseconds. Slices of virtual time are as long as some milliseconds of work. */
const advance = (end, budget) => {
  const to = Math.round(end);
  const begun = performance.now();
  let now = begun;
  while (goesOn && next < to && now - begun < budget) {
    const until = Math.min(to, next + slice);
    note(ask({ run: { to: until } }));
    const ended = performance.now(), took = ended - now;
    if (took < 1.5 && until - slice < to) slice = Math.min(slice * 2, 1e11);
    else if (took > 4) slice = Math.max(Math.floor(slice / 2), 1000);
    spent += took;
    now = ended;
  }
  if (spent > SNAPSHOT_MS) {
    spent = 0;
    remember();
  }
};

/** Goes to a moment, forwards or backwards. What was written later is forgotten. */
const go = (to) => {
  writes = writes.filter((one) => one.at <= to);
  if (to < next) {
    // One from before the last write is not of this history, unless that write comes again on the way.
    const from = snapshots.filter((one) => one.at <= to).pop();
    snapshots = snapshots.filter((one) => one.at <= to);
    fresh(from.memory);
    [next, goesOn] = [from.at, true];
    replay(from.at, to);
  } else {
    advance(to, Infinity);
  }
};
/** Runs from a snapshot at `from` up to `to`, with all that was written on the way. */
const replay = (from, to) => {
  for (const { at, path, value } of writes.filter((one) => one.at >= from && one.at <= to)) {
    advance(at, Infinity);
    ask({ write: { path, value } });
  }
  advance(to, Infinity);
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
const look = (objects) => {
  const begun = performance.now();
  const frame = ask({ frame: { objects } });
  const words = new Uint32Array(wasm.memory.buffer, wasm.play_frame(), wasm.play_frame_length()).slice();
  return { next, goesOn, frame, words, status: ask("status"), writes, ms: performance.now() - begun };
};

const commands = {
  async load({ module }) {
    compiled = await WebAssembly.compile(module);
    fresh();
    return ask("about");
  },
  open({ scenario, set, variant, seed, at, wrote, objects }) {
    fresh();
    snapshots = [];
    [writes, next, goesOn, spent, slice] = [[], 0, true, 0, 1e6];
    // What placement could have been at best is a figure of reports, and takes long at each look; no counter depends on it.
    const asked = ["machine.hindsight=false", ...set];
    const opened = ask({ open: { name: scenario.name, text: scenario.text, set: asked, variant: variant || null, seed: seed ?? null } });
    next = opened.status.next_ns ?? 0;
    remember();
    writes = wrote || [];
    if (at > 0) replay(0, at);
    return { opened, ...look(objects) };
  },
  advance({ to, budget, objects }) {
    advance(to, budget);
    return look(objects);
  },
  batch({ objects }) {
    let told;
    const begun = performance.now();
    do told = note(ask("batch")); while (told.goes_on && !told.scanned && performance.now() - begun < 3000);
    return { scanned: told.scanned, ...look(objects) };
  },
  go({ to, objects }) {
    go(to);
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
  state: () => ({ compiled, begin: snapshots[0].memory, memory: copy(), next, goesOn, writes }),
  adopt({ state, objects }) {
    compiled = state.compiled;
    snapshots = [{ at: 0, memory: state.begin }];
    [writes, next, goesOn, spent, slice] = [state.writes, state.next, state.goesOn, 0, 1e6];
    fresh(state.memory);
    return look(objects);
  },
  /** The story of a page up to the moment of the state: the run from its beginning, with that page followed. */
  story({ state, page, width }) {
    compiled = state.compiled;
    [writes, next, goesOn] = [state.writes, 0, true];
    snapshots = [{ at: 0, memory: state.begin }];
    keeps = false;
    fresh(state.begin);
    ask({ follow: { page } });
    replay(0, state.next);
    return ask({ story: { width } });
  },
};

onmessage = async ({ data: { id, name, args } }) => {
  try {
    const told = await commands[name](args);
    postMessage({ id, told }, told.words ? [told.words.buffer] : []);
  } catch (error) {
    postMessage({ id, error: error.message });
  }
};
