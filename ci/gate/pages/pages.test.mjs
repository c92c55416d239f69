// What readers do with a page of `--report`, done in a real browser. `ci/gate/pages.sh` makes the pages and calls this.
//
//   PAGES       a folder of pages: what is promised of any page is tried on each; of `run.html` and `vmscan-report.html` there is more
//   CHROMIUM    the browser
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import path from "node:path";
import { after, before, suite, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const folder = process.env.PAGES;
const pages = readdirSync(folder).filter((name) => name.endsWith(".html")).map((name) => path.join(folder, name));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser;
before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
});
after(() => browser.close());

/** Opens a page of a disk in a browser without a network, and fails on whatever the console has to say. */
const open = async (file, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1100, height: 1400 }, colorScheme: "light", offline: true, ...options });
  const page = await context.newPage();
  const said = [], asked = [];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(String(error)));
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(pathToFileURL(file).href);
  const check = async () => {
    assert.deepEqual(said, [], "the console stays empty");
    assert.deepEqual(asked.slice(1).filter((url) => !url.startsWith("data:")), [], "nothing else is fetched");
    await context.close();
  };
  return { page, check };
};

/** The times in the middle and at the right end of a picture, as its legend tells them with the pointer there. Its left end may be before anything was sampled. */
const shown = async (page, plot) => {
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.locator(".u-over").boundingBox();
  const time = plot.locator(".u-legend .u-series").first().locator(".u-value");
  const times = [];
  for (const x of [box.width / 2, box.width - 1]) {
    await page.mouse.move(box.x + x, box.y + box.height / 2);
    times.push(Number(await time.textContent()));
  }
  await page.mouse.move(1, 1);
  return times;
};

/** Pictures over time that have a legend. */
const overTime = async (page) => {
  const charts = JSON.parse(await page.locator("#charts").textContent());
  const places = await page.locator(".chart").all();
  const found = places.filter((_, at) => charts[at].x.unit === "s" && charts[at].kind === "lines");
  assert.ok(found.length >= 2, "a page with several pictures over time");
  return found;
};

/** A promise about one page, where it is there. */
const promise = (name, says, keep) => {
  const file = path.join(folder, name);
  if (pages.includes(file)) test(says, () => keep(file));
};

/** What is promised of any page as it is opened, by what is promised. */
const OPENED = {
  "every picture is drawn": async (page, colorScheme) => {
    const places = await page.locator(".chart").count();
    assert.equal(await page.locator("html").getAttribute("data-drawn"), String(places));
    assert.equal(await page.locator(".chart canvas").count(), places);
    assert.equal(await page.evaluate(() => document.documentElement.classList.contains("dark")), colorScheme === "dark");
  },
  "pictures over one time stand below each other": async (page) => {
    const charts = JSON.parse(await page.locator("#charts").textContent());
    const edges = await page.locator(".chart .u-over").evaluateAll((plots) => plots.map((plot) => plot.getBoundingClientRect().left));
    const lefts = new Set(edges.filter((_, at) => charts[at].x.unit === "s").map(Math.round));
    assert.ok(lefts.size <= 1, `left edges at ${[...lefts]}`);
  },
  "harm is orange, what is good is blue, and a legend says so wherever there are bars": async (page) => {
    const hues = await page.evaluate(() => {
      const hue = (colour) => {
        const [r, g, b] = colour.match(/[0-9.]+/g).map(Number);
        return r > b ? "orange" : b > r ? "blue" : "grey";
      };
      const bars = [...document.querySelectorAll(".bars")];
      return bars.map((chart) => ({
        legend: [...chart.previousElementSibling.querySelectorAll("span")].map((entry) => [entry.textContent, entry.querySelector("i").className]),
        bars: [...chart.querySelectorAll("i")].map((bar) => [bar.className, hue(getComputedStyle(bar).borderTopColor)]),
      }));
    });
    for (const { legend, bars } of hues) {
      assert.deepEqual(new Set(legend.map(([, of]) => of)), new Set(bars.map(([of]) => of)));
      for (const [of, hue] of bars) {
        if (of === "worse") assert.equal(hue, "orange");
        if (of === "better") assert.equal(hue, "blue");
      }
    }
  },
  "a legend does not end in a bare colon, and the last name of an axis has room": async (page) => {
    const found = await page.evaluate(() => ({
      colons: [...document.querySelectorAll(".u-legend th")].map((name) => getComputedStyle(name, "::after").content),
      right: [...document.querySelectorAll(".uplot")].map((plot) => plot.getBoundingClientRect().right - plot.querySelector(".u-over").getBoundingClientRect().right),
    }));
    assert.ok(found.colons.every((content) => content === "none"), String(found.colons));
    assert.ok(found.right.every((room) => room >= 30), String(found.right));
  },
  "no rule of accessibility is broken": async (page) => {
    // The page forbids all scripts but its own; this one is the browser's.
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run());
    const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
    assert.deepEqual(told, []);
  },
};

/** And of one that is dark and printed. */
const PRINTED = {
  "paper is white, and has no buttons": async (page) => {
    const printed = await page.evaluate(() => {
      dispatchEvent(new Event("beforeprint"));
      const paper = getComputedStyle(document.body).backgroundColor;
      dispatchEvent(new Event("afterprint"));
      return [paper, getComputedStyle(document.body).backgroundColor];
    });
    assert.equal(printed[0], "rgb(255, 255, 255)");
    assert.notEqual(printed[1], printed[0]);
    await page.emulateMedia({ media: "print" });
    for (const button of await page.locator("button").all()) assert.equal(await button.isVisible(), false);
    assert.ok((await page.pdf()).length > 10_000);
  },
};

/** And of one on a narrow screen. */
const NARROW = {
  "a narrow screen is not wider than it is": async (page) => {
    const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= screen, `${wide} of ${screen}`);
    const [title, button] = [await page.locator("h1").boundingBox(), await page.locator("#theme").boundingBox()];
    assert.ok(button.y + button.height <= title.y, "the button does not cover the title");
    const drawn = await page.locator(".bars :is(.name, i, .figure), .ticks .track span").evaluateAll((all) => all.map((one) => one.getBoundingClientRect()));
    for (const { left, right } of drawn) assert.ok(left >= 0 && right <= screen, `from ${left} to ${right} of ${screen}`);
  },
};

/** And of one at any width: sentences wrap, what has columns is moved sideways in its box, and by keyboard, too. */
const AT_WIDTH = {
  "the page is not wider than the screen": async (page) => {
    const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= screen, `${wide} of ${screen}`);
  },
  "sentences wrap within the page": async (page) => {
    const beyond = await page.evaluate(() => {
      const prose = [...document.querySelectorAll("h1, h2, summary, main p, .prose, footer")].filter((one) => one.getClientRects().length > 0);
      const right = document.querySelector("main").getBoundingClientRect().right;
      const words = document.createRange();
      const edge = (one) => { words.selectNodeContents(one); return Math.max(...[...words.getClientRects()].map((line) => line.right)); };
      return prose.filter((one) => one.scrollWidth > one.clientWidth + 1 || edge(one) > right + 1).map((one) => one.textContent.slice(0, 80));
    });
    assert.deepEqual(beyond, []);
  },
  "no sentence stands in a text of columns": async (page) => {
    // A line of columns has runs of spaces, and figures more than words. What the terminal has is wrapped at 100 characters.
    const sentences = await page.evaluate(() => [...document.querySelectorAll("details[open] pre")].flatMap((pre) => pre.textContent.split("\n"))
      .filter((line) => line.length > 104 && !/\S {2,}\S/.test(line) && line.split(" ").filter((word) => /^[a-z]+[,:;.]?$/.test(word)).length > 10));
    assert.deepEqual(sentences, []);
  },
  "what is wider than the page is moved in its box": async (page) => {
    const boxes = await page.evaluate(() => [...document.querySelectorAll("table:not(.u-legend), pre")].filter((one) => one.getClientRects().length > 0).map((one) => {
      const box = one.closest(".copyable");
      if (!box) return [one.textContent.slice(0, 60), "is in no box"];
      const edges = () => [box.getBoundingClientRect(), one.getBoundingClientRect()];
      if (edges()[0].right > innerWidth + 1) return [one.textContent.slice(0, 60), "its box is wider than the screen"];
      const wide = box.scrollWidth > box.clientWidth;
      if (!wide) return null;
      if (box.tabIndex !== 0) return [one.textContent.slice(0, 60), "no keyboard moves it"];
      box.scrollLeft = box.scrollWidth;
      const ends = box.scrollLeft + box.clientWidth >= box.scrollWidth - 1;
      const says = ends && box.scrollLeft > 0 ? null : [one.textContent.slice(0, 60), "its end can't be seen"];
      box.scrollLeft = 0;
      return says;
    }));
    assert.deepEqual(boxes.filter((says) => says !== null), []);
  },
};

/** Opens a page once, for all that is promised of it so. Each has a result of its own, and the last is that the page fetched and said nothing. */
const opened = (file, how, promises, options) =>
  test(`${path.basename(file, ".html")}, ${how}`, async (all) => {
    const { page, check } = await open(file, options);
    for (const [says, keep] of Object.entries(promises)) await all.test(says, () => keep(page, options.colorScheme));
    await all.test("there was no network, and no word on the console", check);
  });

const ofAny = (file) => {
  opened(file, "light", OPENED, { colorScheme: "light" });
  opened(file, "dark", { ...OPENED, ...PRINTED }, { colorScheme: "dark" });
  opened(file, "narrow", NARROW, { viewport: { width: 390, height: 800 } });
  for (const width of [320, 390, 620, 768, 1100, 1600]) opened(file, `${width} wide`, AT_WIDTH, { viewport: { width, height: 900 } });
};
suite("any page", { concurrency: availableParallelism() }, () => pages.forEach(ofAny));

promise("run.html", "dragging in one picture zooms all pictures over time, and a double-click undoes it", async (file) => {
  const { page, check } = await open(file);
  const plots = await overTime(page);
  const whole = await shown(page, plots[0]);
  const end = whole[1];
  const box = await plots[0].locator(".u-over").boundingBox();
  const middle = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * 0.25, middle);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, middle, { steps: 5 });
  await page.mouse.up();
  for (const plot of plots) {
    const [middle, right] = await shown(page, plot);
    assert.ok(Math.abs(middle - end * 0.375) < end * 0.02, `${middle} s of ${end}`);
    assert.ok(Math.abs(right - end * 0.5) < end * 0.02, `${right} s of ${end}`);
  }
  await plots[0].locator(".u-over").dblclick();
  assert.deepEqual(await shown(page, plots[0]), whole);
  await check();
});

promise("run.html", "the keyboard zooms and moves as the mouse does", async (file) => {
  const { page, check } = await open(file);
  const [plot] = await overTime(page);
  const whole = await shown(page, plot);
  await plot.focus();
  await page.keyboard.press("+");
  const nearer = await shown(page, plot);
  assert.ok(nearer[1] < whole[1] * 0.8, `${nearer} of ${whole}`);
  await plot.focus();
  await page.keyboard.press("ArrowRight");
  const moved = await shown(page, plot);
  assert.ok(moved[0] > nearer[0] && moved[1] > nearer[1], `${moved} after ${nearer}`);
  await plot.focus();
  await page.keyboard.press("0");
  assert.deepEqual(await shown(page, plot), whole);
  await check();
});

promise("run.html", "a line is hidden and shown again from the legend by keyboard", async (file) => {
  const { page, check } = await open(file);
  const entry = page.locator(".u-legend .u-series[role=button]").first();
  await entry.focus();
  await page.keyboard.press("Enter");
  assert.match(await entry.getAttribute("class"), /u-off/);
  await page.keyboard.press(" ");
  assert.doesNotMatch(await entry.getAttribute("class"), /u-off/);
  await check();
});

promise("run.html", "the button changes the theme and leaves the zoom as it was", async (file) => {
  const { page, check } = await open(file);
  const [plot] = await overTime(page);
  await plot.focus();
  await page.keyboard.press("+");
  const nearer = await shown(page, plot);
  await page.locator("#theme").click();
  assert.equal(await page.evaluate(() => document.documentElement.classList.contains("dark")), true);
  assert.deepEqual(await shown(page, plot), nearer);
  await check();
});

promise("run.html", "the heat map has a name, and its table opens by keyboard", async (file) => {
  const { page, check } = await open(file);
  assert.match(await page.locator("svg.heat").getAttribute("aria-label"), /^Accesses by address/);
  const table = page.locator(".heat-table table");
  assert.equal(await table.isVisible(), false);
  await page.locator(".heat-table summary").focus();
  await page.keyboard.press("Enter");
  assert.equal(await table.isVisible(), true);
  const cells = await table.locator("tr").last().locator("td, th").allTextContents();
  assert.match(cells[0], /page [0-9]+$/, "a row is named by its first page");
  assert.ok(cells.length > 2 && cells.slice(1).every((cell) => /^[0-9,]+$/.test(cell)), String(cells));
  await check();
});

promise("damon.html", "the regions of DAMON are hidden and shown again by keyboard, and have a table", async (file) => {
  const { page, check } = await open(file);
  const maps = page.locator("section:has(.regions-switch)");
  assert.equal(await maps.count(), 2, "a map for each kdamond");
  const map = maps.nth(1);
  assert.match(await map.locator("svg.heat").getAttribute("aria-label"), /^Regions of kdamond.1, physical memory/);
  const edges = map.locator("svg .regions .edge");
  assert.ok((await edges.getAttribute("d")).length > 100, "regions have edges");
  assert.ok((await map.locator("svg .regions .found").getAttribute("d")).length > 10, "a region was found in use");
  const seen = () => edges.evaluate((path) => getComputedStyle(path.parentElement).display !== "none");
  assert.equal(await seen(), true);
  await map.locator(".regions-switch").focus();
  for (const shown of [false, true]) {
    await page.keyboard.press("Space");
    assert.equal(await seen(), shown);
  }
  await map.locator(".regions-table summary").click();
  const cells = await map.locator(".regions-table tbody tr, .regions-table tr").last().locator("td, th").allTextContents();
  assert.match(cells[0], /^0x[0-9a-f]+$/, "a row is named by its first address");
  assert.ok(cells.slice(1).every((cell) => /^[0-9]+ %$/.test(cell)), String(cells));
  await check();
});

promise("compare.html", "a better hit ratio has the colour of what is good", async (file) => {
  const { page, check } = await open(file);
  const ratios = await page.locator(".bars li").evaluateAll((rows) => rows.map((row) => [
    row.querySelector(".name").textContent, row.querySelector(".figure").textContent, row.querySelector("i").className,
  ]));
  const changed = ratios.filter(([name, , of]) => name.endsWith("hit ratio") && of !== "noise");
  assert.ok(changed.length > 0, "the page compares hit ratios");
  for (const [name, figure, of] of changed) assert.equal(of, figure.startsWith("+") ? "better" : "worse", `${name} ${figure}`);
  await check();
});

promise("vmscan-report.html", "a table is copied as lines of cells, which spreadsheets take", async (file) => {
  const { page, check } = await open(file, { permissions: ["clipboard-read", "clipboard-write"] });
  const table = page.locator(".copyable:has(table)").first();
  const rows = await table.locator("tr").count();
  await page.locator(".copy:has(+ .copyable table)").first().click();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  const lines = copied.trimEnd().split("\n");
  assert.equal(lines.length, rows);
  assert.ok(lines.every((line) => line.includes("\t")), copied);
  await check();
});

promise("run.html", "the legend tells a value of each line at the pointer", async (file) => {
  const { page, check } = await open(file);
  const [plot] = await overTime(page);
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.locator(".u-over").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const values = await plot.locator(".u-legend .u-value").allTextContents();
  assert.ok(values.length >= 2 && values.every((value) => value !== "" && value !== "--"), String(values));
  await check();
});
