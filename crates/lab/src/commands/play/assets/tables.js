// --- tables ---------------------------------------------------------------------------------------------------------------------------------
/** A table's markup. A cell is a text, or has its own markup in `html`. */
const markup = (cell) => cell.html ?? escaped(cell);
const table = (heads, body) => `<table><thead><tr>${heads.map((head, at) => `<th scope="col"${at ? ' class="n"' : ""}>${escaped(head)}</th>`).join("")}</tr></thead><tbody>${body.map((cells) => `<tr>${cells.map((cell, at) => at ? `<td class="n">${markup(cell)}</td>` : `<th scope="row">${markup(cell)}</th>`).join("")}</tr>`).join("")}</tbody></table>`;
/** Shows a table, and changes only the cells that differ: a click on a button and a selection of text outlive a frame. */
const show = (place, heads, body) => {
  const cells = [heads, ...body].map((row) => row.map(markup)), before = place.cells;
  place.cells = cells;
  if (!before || before.length !== cells.length || before[0].join() !== cells[0].join()) {
    place.innerHTML = table(heads, body);
    return;
  }
  const { rows } = place.querySelector("table");
  cells.forEach((row, nth) => row.forEach((cell, at) => {
    if (cell !== before[nth][at]) rows[nth].cells[at].innerHTML = cell;
  }));
};
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
  show($("tasks"), ["task", "accesses", "hits", "time", "shares"], body);
};
const groups = () => {
  const body = machines.flatMap(({ letter, last: { status, frame } }) => status.groups.map((group, at) => {
    const of = (wanted) => bytes(frame.lists.filter((list) => list.group === at && list.kind === wanted).reduce((sum, { pages }) => sum + pages, 0));
    // Files are shown for both machines.
    const button = { html: `<button type="button" class="group" data-group="${escaped(group.path)}" aria-label="Kernel files of ${escaped(group.path)}">${escaped(group.path)}</button>` };
    return [
      letter === "A" ? button : `${group.path}, machine ${letter}`,
      bytes(group.usage), of("file"), of("anon"), bytes(group.swap), grouped(group.refaults), time(group.memory_some_ns), time(group.memory_full_ns),
    ];
  }));
  show($("groups"), ["group (click: its kernel files)", "charged", "file, here", "anon, here", "swap", "refaults", "memory stall, some", "full"], body);
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
  show($("differences"), [`since the start; forked at ${seconds(forkedAt)}`, "A", "B", "B - A"], body);
};
const sums = (machine) => {
  const details = machine.element.querySelector("details");
  if (!details.open) return;
  const { frame, status } = machine.last;
  const lists = frame.lists.filter(({ pages }) => pages > 0);
  show(details.querySelector("div"), ["list", "pages", "size"], lists.map((list) => [named(list, status), grouped(list.pages), bytes(list.pages)]));
};
const tables = () => {
  legend();
  tasks();
  groups();
  differences();
  machines.forEach(sums);
};
