// --- all of it, drawn ------------------------------------------------------------------------------------------------------------------------------
let drawnAt = 0;
const CHART_MS = 80;
const redraw = (all) => {
  const began = performance.now();
  // Charts and tables are read, not watched: one at a time, a few times a second, in a frame that leaves the squares as they are.
  if (!all && began - drawnAt > CHART_MS) {
    redraw.turn = ((redraw.turn ?? 0) + 1) % (plots.length + 1);
    redraw.turn ? chart(false) : tables();
    drawnAt = performance.now();
  } else {
    for (const machine of machines) {
      const heading = machines.length > 1 ? `Machine ${machine.letter}, forked at ${seconds(forkedAt)}` : `${opened.policy}`;
      const place = machine.element.querySelector("h3");
      if (place.textContent !== heading) place.textContent = heading;
      paint(machine);
    }
    if (all) {
      chart(true);
      tables();
    }
  }
  draws.push(performance.now() - began);
  if (draws.length > 600) draws.shift();
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
      if (seed && !(/^[0-9]+$/.test(seed) && Number.isSafeInteger(Number(seed)))) throw new Error(`seed: found \`${seed}\`, expected a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`);
      await open({ variant: $("variant").value, set: settings(), seed: seed ? Number(seed) : null });
    });
  });
  $("scenario").addEventListener("change", async () => {
    leave();
    await pause();
    await doing(() => open({ scenario: $("scenario").value, variant: "", set: [], seed: null }));
    $("scenario").value = state.scenario;
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
  $("page-close").addEventListener("click", () => {
    closeStory();
    hash();
  });
  $("page-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    await pause();
    await follow(machines[0], $("page-find").value.trim()).then(() => fail(null), fail);
    if (followed) $("page").scrollIntoView({ block: "nearest" });
  });
  $("attempt").addEventListener("click", attempt);
  $("attempts").addEventListener("click", (event) => {
    const of = event.target.closest("[data-path]")?.dataset;
    if (of) adopt(of.path, of.value);
  });
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

$("tasks-legend").innerHTML = PARTS.map(([name, colour]) => `<span><i style="background:var(${colour})"></i>${name}</span>`).join("");
$("scenario").innerHTML = DATA.scenarios.map(({ name }) => option(name, name)).join("");
$("tour").innerHTML = option("", "choose ...") + DATA.tours.map(({ title }) => option(title, title)).join("");
dress();
listen();
controls();
state.scenario = DATA.chosen;
doing(async () => {
  if (location.hash.length <= 1) return open();
  try {
    await restore(location.hash);
  } catch (error) {
    // A damaged link still leaves a machine to look at.
    if (!opened) await open();
    throw error;
  }
});
// For tests and for the curious.
window.pageout = {
  draws, machines: () => machines, now, open: (more) => doing(() => open(more)), go, batch, fork, adopt, run, pause, write,
  result: (of = 0) => machines[of].call("result"), hash: linked,
  finish: () => doing(async () => { while (goesOn()) await all("advance", { to: ENDLESS, budget: 200 }); settled(); }),
};
