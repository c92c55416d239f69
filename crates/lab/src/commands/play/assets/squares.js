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
    machine.cursor = Math.max(0, Math.min(machine.total - 1, cell + step));
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
  const { last: { words }, boxes } = machine, at = boxes.findIndex(({ first, count }) => cell >= first && cell < first + count), { first, part } = boxes[at];
  return objects() ? { object: [at, cell - first] } : { frame: words[2 * folioOf(words, part, cell - first)] };
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
  if (cell >= machine.total) return;
  machine.cursor = cell;
  paint(machine);
  try {
    const told = await machine.call("page", { which: which(machine, cell) });
    machine.element.querySelector(".hover").textContent = described(told);
    await follow(machine, told.page);
  } catch (error) {
    fail(error);
  }
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
/** A canvas larger than this is blank in some browsers. */
const HEIGHT_MAX = 16_000;
/** Where each part is: boxes of squares below each other, as large as the picture allows. */
const arrange = (machine, width, dots) => {
  const { frame, status } = machine.last, isObjects = objects();
  const parts = isObjects ? frame.objects : frame.lists.filter(({ pages }) => pages > 0);
  const total = parts.reduce((sum, { pages }) => sum + pages, 0);
  const high = Math.min(560, Math.max(240, innerHeight * 0.55)) * dots, label = Math.round(LABEL * dots);
  const size = Math.max(2, Math.min(Math.round(11 * dots), Math.floor(Math.sqrt(width * high / Math.max(1, total)))));
  const columns = Math.max(1, Math.floor(width / size));
  let top = 0, first = 0;
  const boxes = parts.map((part) => {
    const name = isObjects ? part.name : named(part, status);
    // What does not fit is said in the label.
    const count = Math.min(part.pages, Math.max(0, Math.floor((HEIGHT_MAX - top - label) / size)) * columns);
    const box = { name, part, top: top + label, bottom: top + label + Math.ceil(count / columns) * size, columns, size, first, count };
    top = box.bottom + Math.round(3 * dots);
    first += count;
    return box;
  });
  return { boxes, size, columns, total: first, height: Math.max(label, top) };
};
/** The colours of a frame: by list, of a page that was not used and one that was; by state; and of pages that are not in memory. */
const palette = ({ frame }) => {
  const c = colours(), plain = frame.lists.map((list) => tint(list, frame.lists));
  return {
    plain: Uint32Array.from(plain, word), used: Uint32Array.from(plain, (colour) => word(mix(colour, c.ink, 0.84))),
    states: [c.dirty, c.writeback, c.reading].map(word), only: word(c.worse), none: word(mix(c.reading, c.paper, 0.8)),
    away: Uint32Array.from([c.soft, mix(c.worse, c.paper, 0.3), mix(c.ink, c.paper, 0.45), c.zswap], word),
  };
};
/** Puts the colours of a box's squares into `to`. The loops are plain: there may be a million squares a frame. */
const fillObject = ({ part, count }, words, other, { plain, only, none, away }, to) => {
  for (let cell = 0, at = part.at; cell < count; cell++, at++) {
    const place = words[at];
    if (place < 4) to[cell] = away[place];
    else if (other !== null && other[cell] < 4) to[cell] = only;
    else to[cell] = place >= 8 ? plain[(place >> 3) - 1] : none;
  }
};
const fillList = ({ part, count }, words, calm, warm, states, to) => {
  for (let cell = 0, at = 2 * part.at + 1; cell < count; at += 2) {
    const bits = words[at];
    let colour = bits & 1 ? warm : calm;
    if (states !== null) colour = bits & 8 ? states[0] : bits & 16 ? states[1] : bits & 32 ? states[2] : calm;
    const end = Math.min(count, cell + (1 << (bits >> 9 & 15)));
    while (cell < end) to[cell++] = colour;
  }
};
/** The folio of a square of a list. */
const folioOf = (words, part, square) => {
  let folio = part.at;
  for (let left = square; ; folio++) {
    left -= 1 << (words[2 * folio + 1] >> 9 & 15);
    if (left < 0) return folio;
  }
};
/** Draws the squares whose colour is not `shown`. Returns the first and the last of them. */
const change = (dot, width, { top, columns, size, count }, side, shown, had, wanted) => {
  let first = -1, last = -1;
  for (let cell = 0, row = top * width, column = 0; cell < count; cell++) {
    const colour = wanted[cell];
    if (cell >= had || shown[cell] !== colour) {
      shown[cell] = colour;
      if (first < 0) first = cell;
      last = cell;
      const begin = row + column * size;
      for (let line = 0, from = begin; line < side; line++, from += width) {
        for (let at = from, end = from + side; at < end; at++) dot[at] = colour;
      }
    }
    if (++column === columns) [column, row] = [0, row + size * width];
  }
  return [first, last];
};
/** Draws the squares that have changed since the last time. */
const paint = (machine) => {
  const { canvas } = machine, c = colours();
  const dots = Math.min(2, devicePixelRatio || 1), width = Math.round(canvas.clientWidth * dots);
  if (!width || !opened) return;
  const { boxes, size, columns, total, height } = arrange(machine, width, dots);
  Object.assign(machine, { boxes, total });
  const { last: { frame, words } } = machine, isObjects = objects();
  const by = palette(machine.last), states = $("colour").value === "state" ? by.states : null;
  const other = isObjects && machines.length > 1 ? machines.find((one) => one !== machine).last : null;
  const listAt = new Map(frame.lists.map((list, nth) => [list, nth]));
  let isNew = machine.drawn?.theme !== c || machine.drawn?.size !== size;
  // A row more or less moves nothing else on the page.
  const spare = Math.round(12 * dots);
  if (canvas.width !== width || canvas.height < height || canvas.height > height + 4 * spare) {
    [canvas.width, canvas.height] = [width, height + spare];
    machine.image = null;
    isNew = true;
  }
  const context = machine.context ??= canvas.getContext("2d", { alpha: false });
  machine.image ??= context.createImageData(width, canvas.height);
  const dot = new Uint32Array(machine.image.data.buffer), paper = word(c.paper), side = size >= 4 ? size - 1 : size;
  if (isNew) dot.fill(paper);
  context.font = `${12 * dots}px system-ui, sans-serif`;
  const before = isNew ? [] : machine.drawn.boxes;
  if (!isNew && machine.drawn.mark) context.putImageData(machine.image, 0, 0, ...machine.drawn.mark);
  const label = Math.round(LABEL * dots);
  // By box, the colours that are on the canvas.
  const drawn = boxes.map((box, nth) => {
    const isThere = before[nth]?.top === box.top && before[nth].bottom === box.bottom, old = isThere ? before[nth] : null;
    const end = boxes[nth + 1] ? boxes[nth + 1].top - label : canvas.height, had = old?.count ?? 0;
    const shown = old?.shown.length >= box.count ? old.shown : new Uint32Array(Math.ceil(box.count * 1.2) + 64);
    if (old && shown !== old.shown) shown.set(old.shown.subarray(0, had));
    // Where a box comes to be there may be anything.
    if (!old && !isNew) dot.fill(paper, (box.top - label) * width, end * width);
    const wanted = machine.wanted?.length >= box.count ? machine.wanted : machine.wanted = new Uint32Array(Math.ceil(box.count * 1.2) + 64);
    if (isObjects) {
      const beside = other?.frame.objects[nth];
      fillObject(box, words, beside ? other.words.subarray(beside.at) : null, by, wanted);
    } else {
      const list = listAt.get(box.part);
      fillList(box, words, by.plain[list], by.used[list], states, wanted);
    }
    let [from, to] = change(dot, width, box, side, shown, had, wanted);
    if (had > box.count) {
      // The end of the list has moved up.
      for (let cell = box.count; cell < had; cell++) {
        const begin = (box.top + Math.floor(cell / columns) * size) * width + cell % columns * size;
        for (let line = 0; line < side; line++) dot.fill(paper, begin + line * width, begin + line * width + side);
      }
      [from, to] = [from < 0 ? box.count : from, had - 1];
    }
    const all = box.part.all ?? box.part.pages, missing = all - box.count;
    const text = `${box.name}: ${pages(all)} (${bytes(all)})${missing ? `, of which ${grouped(missing)} do not fit here` : ""}`;
    const isSame = old?.text === text;
    if (!old && !isNew) context.putImageData(machine.image, 0, 0, 0, box.top - label, width, end - box.top + label);
    if (old) {
      const [first, last] = [from, to].map((cell) => Math.floor(cell / columns) * size);
      if (to >= 0) context.putImageData(machine.image, 0, 0, 0, box.top + first, width, last - first + size);
      if (!isSame) context.putImageData(machine.image, 0, 0, 0, box.top - label, width, label);
    }
    return { top: box.top, bottom: box.bottom, count: box.count, shown, text, isSame };
  });
  if (isNew) context.putImageData(machine.image, 0, 0);
  context.fillStyle = `rgb(${c.ink})`;
  for (const { top, text, isSame } of drawn) {
    if (isNew || !isSame) context.fillText(text, 1, top - Math.round(4 * dots), width);
  }
  machine.drawn = { boxes: drawn, size, theme: c, mark: null };
  if (machine.cursor === null) return;
  const box = boxes.find(({ first, count }) => machine.cursor >= first && machine.cursor < first + count);
  if (!box) return;
  const cell = machine.cursor - box.first, x = cell % columns * size - dots, y = box.top + Math.floor(cell / columns) * size - dots, edge = side + 2 * dots;
  context.strokeStyle = `rgb(${c.ink})`;
  context.lineWidth = 2 * dots;
  context.strokeRect(x, y, edge, edge);
  machine.drawn.mark = [x - dots, y - dots, edge + 2 * dots, edge + 2 * dots].map(Math.round);
};
