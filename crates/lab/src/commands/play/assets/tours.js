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
    await doing(() => open({ scenario: action.open, variant: action.variant || "", set: action.set || [], seed: null }));
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
