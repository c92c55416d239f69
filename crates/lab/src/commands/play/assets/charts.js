// --- history and charts --------------------------------------------------------------------------------------------------------------
const ROWS_MAX = 500;
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
