// Looks at pages of the built book in a real browser. `ci/book.sh` builds it and calls this.
//
//   BOOK        the folder of the built book
//   CHROMIUM    the browser
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

const require = createRequire(path.resolve("ci/gate/pages/package.json"));
const { chromium } = require("playwright-core");

// A page with each of: diagrams, wide tables, wide output, long code, a generated table.
const pages = [
  "start/what.html",
  "start/glossary.html",
  "tutorials/policy.html",
  "howto/run-report.html",
  "reference/commands.html",
  "reference/scenario-keys.html",
  "explanation/how-it-works.html",
  "spec/index.html",
];

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
});
after(() => browser.close());

/** The contrast of the text of an element with the nearest ground that has a colour, by WCAG. */
const contrast = (page, selector) =>
  page.locator(selector).first().evaluate((element) => {
    const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
      const [x, y, z] = [r, g, b].map((c) => ((c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
      return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    let ground = element;
    const isClear = (colour) => numbers(colour)[3] === 0;
    while (ground.parentElement && isClear(getComputedStyle(ground).backgroundColor)) ground = ground.parentElement;
    const [a, b] = [light(numbers(getComputedStyle(element).color)), light(numbers(getComputedStyle(ground).backgroundColor))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });

for (const name of pages) {
  for (const [width, colorScheme] of [[380, "light"], [380, "dark"], [1280, "dark"]]) {
    test(`${name} at ${width} px, ${colorScheme}`, async () => {
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, offline: true });
      const page = await context.newPage();
      const said = [];
      page.on("pageerror", (error) => said.push(String(error)));
      await page.goto(pathToFileURL(path.join(process.env.BOOK, name)).href);
      assert.deepEqual(said, [], "no script fails");
      assert.ok(await page.locator("main h1").first().isVisible(), "the title is visible");
      // Code and tables scroll by themselves; what holds the text does not.
      const beyond = await page.locator(".content").evaluate((content) => content.scrollWidth - content.clientWidth);
      assert.ok(beyond <= 0, `the page scrolls sideways by ${beyond} px`);
      const isDark = await page.evaluate(() => /\b(navy|coal|ayu)\b/.test(document.documentElement.className));
      assert.equal(isDark, colorScheme === "dark", "the theme follows the reader's setting");
      for (const selector of ["main p", "main :is(p, td) a", "main code"]) {
        if (selector !== "main p" && !(await page.locator(selector).count())) continue;
        const figure = await contrast(page, selector);
        assert.ok(figure >= 4.5, `contrast of ${selector} is ${figure.toFixed(1)}`);
      }
      const broken = await page.locator("main img").evaluateAll(async (images) => {
        await Promise.all(images.map((image) => image.decode().catch(() => {})));
        return images.filter((image) => !image.naturalWidth || !image.alt).map((image) => image.src);
      });
      assert.deepEqual(broken, [], "each picture is drawn, and has a description");
      await context.close();
    });
  }
}
