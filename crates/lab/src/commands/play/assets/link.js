// --- a link to this moment ---------------------------------------------------------------------------------------------------------
const linked = () => {
  const all = { s: state.scenario, t: now() };
  if (state.variant) all.variant = state.variant;
  if (state.set.length) all.set = state.set;
  if (state.seed !== null) all.seed = state.seed;
  if ($("view").value !== "lists") all.view = $("view").value;
  if ($("colour").value !== "list") all.colour = $("colour").value;
  if (followed) all.page = followed.page;
  if (machines[0].last.writes.length) all.w = machines[0].last.writes.map(({ at, path, value }) => [at, path, value]);
  if (forkedAt !== null) all.fork = { t: forkedAt, w: machines[1].last.writes.filter(({ at }) => at >= forkedAt).map(({ at, path, value }) => [at, path, value]) };
  return "#" + encodeURIComponent(JSON.stringify(all));
};
let hashed = "";
const hash = () => {
  hashed = linked();
  history.replaceState(null, "", hashed);
};

/** The state that a link's text has. Errors: it has none, or one that no page has written. */
const unlinked = (text) => {
  const wrong = (place, found, expected) => {
    const shown = (JSON.stringify(found) ?? "nothing").slice(0, 60);
    throw new Error(`link: ${place}: found \`${shown}\`, expected ${expected}\nhelp: copy the link again`);
  };
  let given;
  try {
    given = JSON.parse(decodeURIComponent(text.slice(1)));
  } catch {
    throw new Error("link: the part after # is damaged: found no state of this page\nhelp: copy the link again");
  }
  const isWhole = (value) => Number.isSafeInteger(value) && value >= 0;
  const isTime = (value) => Number.isInteger(value) && value >= 0 && value <= ENDLESS;
  const isText = (value) => typeof value === "string";
  const check = (of, key, is, expected, otherwise) => {
    if (of[key] === undefined && otherwise !== undefined) return otherwise;
    return is(of[key]) ? of[key] : wrong(key, of[key], expected);
  };
  const isTable = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isTable(given)) wrong("state", given, "a table");
  const time = "a whole number of nanoseconds";
  const writes = (of) => check(of, "w", Array.isArray, "a list of writes", []).map((one) => {
    const isWrite = Array.isArray(one) && one.length === 3 && isTime(one[0]) && isText(one[1]) && isText(one[2]);
    return isWrite ? { at: one[0], path: one[1], value: one[2] } : wrong("w", one, "[time, file, value]");
  });
  const choice = (key, otherwise) => {
    const options = [...$(key).options].map(({ value }) => value);
    return check(given, key, (value) => options.includes(value), `one of ${options.join(", ")}`, otherwise);
  };
  const names = DATA.scenarios.map(({ name }) => name);
  const told = {
    scenario: check(given, "s", (value) => names.includes(value), "a scenario of this page"),
    at: check(given, "t", isTime, time, 0),
    variant: check(given, "variant", isText, "the name of a variant", ""),
    set: check(given, "set", (value) => Array.isArray(value) && value.every(isText), "a list of settings", []),
    seed: check(given, "seed", isWhole, "a whole number from 0", null),
    view: choice("view", "lists"), colour: choice("colour", "list"),
    page: check(given, "page", isText, "the name of a page", ""),
    writes: writes(given), fork: null,
  };
  if (given.fork !== undefined) {
    if (!isTable(given.fork)) wrong("fork", given.fork, "a table");
    told.fork = { at: check(given.fork, "t", (value) => isTime(value) && value <= told.at, `${time}, at most ${told.at}`), writes: writes(given.fork) };
  }
  return told;
};
const restore = async (text) => {
  const given = unlinked(text);
  const { scenario, variant, set, seed, writes, fork } = given;
  const before = fork ? fork.at : given.at;
  [$("view").value, $("colour").value] = [given.view, given.colour];
  await open({ scenario, variant, set, seed }, { at: before, wrote: writes.filter(({ at }) => at <= before) });
  if (fork) {
    await split();
    // The second machine may have been told more at the very moment of the fork.
    for (const [machine, more] of [[machines[0], writes.filter(({ at }) => at > before)], [machines[1], fork.writes]]) {
      for (const { at, path, value } of more) {
        await machine.call("go", { to: at, objects: false });
        took(machine, await machine.call("write", { path, value, objects: objects() }));
      }
    }
    await all("go", { to: given.at });
  }
  settled();
  if (given.page) await follow(machines[0], given.page);
};
