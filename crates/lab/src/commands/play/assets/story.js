// --- the story of a page, and what would keep it ----------------------------------------------------------------------------------------
let teller = null, followed = null; // { page, letter, state, told }
const closeStory = () => {
  teller?.end();
  teller = followed = null;
  $("page").hidden = true;
};
/** The sentence of a story that says why the page is where it is. */
const reason = (text) => {
  const [first, ...others] = text.split("\n\n");
  const part = others.find((one) => one.startsWith("So")) ?? first.split("\n").slice(1).join(" ");
  return part.split("The run ended at")[0].replace(/\s+/g, " ");
};
/** Tells the story of a page by its name: the run from its beginning, with this page followed. */
const follow = async (machine, page) => {
  const { place } = await machine.call("page", { which: { name: page } });
  closeStory();
  $("page").hidden = false;
  $("page-find").value = page;
  $("page-name").textContent = `Machine ${machine.letter}, at ${seconds(machine.last.next)}: ${described({ page, place })}.`;
  $("page-so").textContent = $("attempts").textContent = "";
  $("attempt").disabled = true;
  const it = teller = worker(), mine = followed = { page, letter: machine.letter };
  const say = (text) => {
    if (followed === mine) $("story").textContent = text;
  };
  const again = "Runs again from the start, and notes what happens to this page";
  say(`${again} ...`);
  try {
    mine.status = machine.last.status;
    mine.state = { ...await machine.call("state"), memory: null };
    mine.told = await it.call("story", { state: mine.state, page, width: 100 }, (at) => say(`${again}: ${seconds(at)} of ${seconds(mine.state.next)} ...`));
    say(mine.told.text);
    if (followed === mine) {
      $("page-so").textContent = reason(mine.told.text);
      $("attempt").disabled = !mine.told.group;
      hash();
    }
  } catch (error) {
    say(error.message);
  }
  it.end();
};

/** Files that could keep a page of this kind in this group, each with a value to try. */
const candidates = async (machine, { group, isAnon }) => {
  const ours = await machine.call("files", { group }), known = new Map([...ours.group, ...ours.machine].map((file) => [file.path, file]));
  const directory = group === "/" ? "" : group;
  // The limits of the groups above hold, too.
  const above = directory.split("/").map((_, at, all) => all.slice(0, all.length - at).join("/")).filter((path) => path);
  const paths = above.flatMap((path) => ["memory.max", "memory.high"].map((name) => `/sys/fs/cgroup${path}/${name}`));
  const own = ["memory.low", "memory.min", "memory.swap.max"].map((name) => `/sys/fs/cgroup${directory}/${name}`);
  const machineWide = ["/proc/sys/vm/swappiness", "/sys/kernel/mm/lru_gen/enabled", "/sys/kernel/mm/lru_gen/min_ttl_ms"];
  const readable = [...paths, ...(directory ? own : []), ...machineWide].filter((path) => paths.includes(path) || known.get(path)?.write);
  const values = new Map((await machine.call("read", { paths: readable })).filter(({ text }) => text).map(({ path, text }) => [path, text.trim()]));
  const usage = machine.last.status.groups.find(({ path }) => path === group)?.usage ?? 0;
  const tries = [];
  const size = (bytes) => Number(bytes) > 0 && bytes % 2 ** 20 === 0 ? `${bytes / 2 ** 20}MiB` : String(bytes);
  const add = (path, value) => values.has(path) && value !== null && value !== values.get(path) && tries.push({ path, value: size(value), before: size(values.get(path)) });
  for (const path of paths) add(path, values.get(path) === "max" ? null : 2 * Number(values.get(path)));
  if (directory) for (const path of own.slice(0, 2)) add(path, Math.ceil(usage / 256) * 2 ** 20);
  if (opened.has_swap) {
    if (isAnon && directory) add(own[2], 0);
    add(machineWide[0], isAnon ? 0 : 100);
  }
  const enabled = values.get(machineWide[1]);
  if (enabled !== undefined) add(machineWide[1], Number(enabled) ? "n" : "y");
  if (enabled !== undefined && Number(enabled)) add(machineWide[2], 1000);
  return tries;
};
/** Runs again up to this moment with each candidate, and shows which of them keep the page. */
const attempt = async () => {
  const mine = followed, machine = machines.find(({ letter }) => letter === mine?.letter);
  if (!machine || !mine.told?.group) return;
  $("attempt").disabled = true;
  const { page, state: begun, told: { group, is_anon: isAnon } } = mine, place = $("attempts");
  const outcome = ({ place, evictions, status }) => {
    const of = status.groups.find(({ path }) => path === group);
    const now = place.list ? { html: "<b>in memory</b>" } : place.name;
    return [now, status.failed ? "the run failed" : grouped(evictions), of ? grouped(of.refaults) : ""];
  };
  const body = [["nothing", "", ...outcome({ ...mine.told, status: mine.status })]];
  const heads = ["written at the start", "before", "the page now", "times evicted", `refaults of ${group}`];
  try {
    const tries = await candidates(machine, { group, isAnon });
    for (const [nth, { path, value, before }] of tries.entries()) {
      place.innerHTML = `<p class="faint">Runs again with another value, ${nth + 1} of ${tries.length} ...</p>` + table(heads, body);
      const it = teller = worker();
      let row;
      try {
        row = outcome(await it.call("attempt", { state: begun, page, written: { path, value } }));
      } catch (error) {
        row = [error.message.split("\n")[0], "", ""];
      }
      it.end();
      if (followed !== mine) return;
      body.push([{ html: `<button type="button" class="group" data-path="${escaped(path)}" data-value="${escaped(value)}" aria-label="Fork the run with ${escaped(path)} = ${escaped(value)}">${escaped(path.replace("/sys/fs/cgroup", ""))} = ${escaped(value)}</button>` }, before, ...row]);
    }
    place.innerHTML = (tries.length ? "<p>Click a value: machine B runs with it from the start, next to machine A.</p>" : "<p>No file of this group or machine has a value to try.</p>") + table(heads, body);
  } catch (error) {
    if (followed === mine) place.textContent = error.message;
  }
  $("attempt").disabled = false;
};
/** Two machines from the start up to this moment, the second one with this value. */
const adopt = (path, value) => doing(async () => {
  const to = now();
  if (machines.length > 1) await unfork();
  await all("go", { to: 0, keeps: true });
  rows = [];
  places = [0];
  await split();
  took(machines[1], await machines[1].call("write", { path, value, objects: objects() }));
  settled();
  await forward(to);
  settled();
  $("difference").scrollIntoView({ block: "nearest" });
});
