// The model of public/model.js: the laws it must keep, and what is particular to each of the seven.
// test_explore.py runs this under node, to which a URL of its text is a module, and its name is not.
import assert from "node:assert/strict";
import fs from "node:fs";
import test from "node:test";

const TOP = new URL("../../", import.meta.url);
const text = encodeURIComponent(fs.readFileSync(new URL("public/model.js", TOP)));
const { MEASURED, SERVERS, digest, simulate } = await import(`data:text/javascript,${text}`);

const NAMES = Object.keys(SERVERS);
const rate = (name, settings) => simulate(name, settings).rate;
const near = (value, wanted, share, what) =>
  assert.ok(Math.abs(value / wanted - 1) <= share, `${what}: ${value} is not within ${100 * share} % of ${wanted}`);

const SOME = [{ clients: 20 }, { clients: 300, kept: true }, { clients: 200, delay: 5 }, { clients: 30, work: 1, cores: 2 },
  { clients: 50, work: 1, cores: 2, shared: true, kept: true }, { clients: 60, apart: true }, { clients: 90, delay: 2, relay: true }];

test("Little's law: clients = rate x time; and no core is more than busy", () => {
  for (const name of NAMES) {
    for (const settings of SOME) {
      const { rate: each, mean } = simulate(name, { ...settings, pages: 100 }); // so that its edges do not count
      near((each * mean) / 1000, settings.clients, 0.01, `${name} ${JSON.stringify(settings)}`);
      const { server, other } = simulate(name, settings);
      for (const busy of [...server, other]) assert.ok(busy >= 0 && busy < 1.001, `${name}: ${busy}`);
    }
  }
});

test("distance and work make nobody faster, and workers and cores nobody slower", () => {
  for (const name of NAMES) {
    for (const [settings, which, values, sign] of [
      [{ clients: 100 }, "delay", [1, 5, 20, 100], -1], [{ clients: 50 }, "work", [0, 0.5, 2, 10], -1],
      [{ clients: 100, delay: 10 }, "workers", [2, 10, 50, 100], 1],
      [{ clients: 64, work: 2, apart: true }, "cores", [1, 2, 8], 1]]) {
      const rates = values.map((value) => rate(name, { ...settings, [which]: value }));
      rates.slice(1).forEach((each, i) => assert.ok(sign * each >= sign * rates[i] * (1 - sign * 0.03),
        `${name}: ${which} ${values[i + 1]} gives ${each}, and ${values[i]} gave ${rates[i]}`));
    }
  }
});

test("each of the seven has its bound", () => {
  for (const [names, settings, wanted, share] of [
    ["iterative", { clients: 300, delay: 10 }, 33.1, 0.02], ["iterative", { clients: 20, work: 5, cores: 8 }, 195, 0.05],
    ["forking", { clients: 200, delay: 100 }, 200 / 0.3, 0.1], // a process for each connection
    ["preforking threading prethreading", { clients: 400, delay: 50 }, 100 / 0.15, 0.03], // so many workers
    ["preforking threading prethreading", { clients: 400, delay: 50, workers: 20 }, 20 / 0.15, 0.03],
    ["poll epoll", { clients: 500, delay: 100 }, 500 / 0.3, 0.05], // everybody, on one core
    ["poll epoll", { clients: 100, work: 2, cores: 4, apart: true }, 490, 0.03],
    ["forking preforking threading prethreading", { clients: 400, work: 5, cores: 4, apart: true }, 780, 0.1]]) {
    for (const name of names.split(" ")) near(rate(name, settings), wanted, share, `${name} ${JSON.stringify(settings)}`);
  }
  assert.equal(simulate("forking", { clients: 2100, delay: 300, apart: true, cores: 8 }).workers, 2048);
});

test("the costs are those of the stored run, and what is no run of cost is refused", () => {
  assert.deepEqual(MEASURED, digest(fs.readFileSync(new URL("loadtest/results/model/cells.tsv", TOP), "utf8")));
  assert.throws(() => digest("server\tkind\nepoll\tab\n"), /no cell of iterative, ab, 1 clients/);
});
