// The model of public/model.js: the laws it must keep, and what is particular to each of the seven.
// test_explore.py runs this under node, to which a URL of its text is a module, and its name is not.
import assert from "node:assert/strict";
import fs from "node:fs";
import test from "node:test";

const TOP = new URL("../../", import.meta.url);
const text = encodeURIComponent(fs.readFileSync(new URL("public/model.js", TOP)));
const { MEASURED, SERVERS, Sim, derive, digest, simulate } = await import(`data:text/javascript,${text}`);

const NAMES = Object.keys(SERVERS);
const COST = new URL("loadtest/results/cost/cells.tsv", TOP);
const rate = (name, settings) => simulate(name, settings).rate;
const near = (value, wanted, share, what) =>
  assert.ok(Math.abs(value / wanted - 1) <= share, `${what}: ${value} is not within ${100 * share} % of ${wanted}`);

const SOME = [{ clients: 20 }, { clients: 300, kept: true }, { clients: 200, delay: 5 }, { clients: 30, work: 1, cores: 2 },
  { clients: 50, work: 1, cores: 2, shared: true, kept: true }, { clients: 60, apart: true }, { clients: 90, delay: 2, relay: true }];

test("each client has one question at a time, and each question one answer", () => {
  for (const name of NAMES) {
    for (const settings of SOME) {
      const sim = new Sim(name, settings);
      const open = new Map();
      let [asked, answered] = [0, 0];
      const [arrive, give] = [sim.arrive, sim.tool.give.bind(sim.tool)];
      sim.arrive = (client) => {
        assert.ok(!open.get(client), `${name}: asked twice`);
        open.set(client, true);
        asked += 1;
        arrive(client);
      };
      sim.tool.give = (client) => {
        if (client.connects) return give(client); // it has its answer, and connects for the next
        assert.ok(open.get(client), `${name}: answered twice`);
        open.set(client, false);
        answered += 1;
        give(client);
      };
      sim.advance();
      assert.equal(open.size, settings.clients, `${name}: a client was never served`);
      assert.ok(asked - answered >= 0 && asked - answered <= settings.clients);
    }
  }
});

test("Little's law: clients = rate x time, to one percent", () => {
  for (const name of NAMES) {
    for (const settings of SOME) {
      const result = simulate(name, { ...settings, pages: 100 }); // so that those at its edges do not count
      near((result.rate * result.mean) / 1000, settings.clients, 0.01, `${name} ${JSON.stringify(settings)}`);
    }
  }
});

test("no core is ever more than busy", () => {
  for (const name of NAMES) {
    for (const settings of SOME) {
      const { server, other } = simulate(name, settings);
      for (const busy of [...server, other]) assert.ok(busy >= 0 && busy < 1.001, `${name}: ${busy}`);
    }
  }
});

test("distance and work make nobody faster, and workers and cores nobody slower", () => {
  const grows = (name, settings, which, values, sign) => {
    const rates = values.map((value) => rate(name, { ...settings, [which]: value }));
    rates.slice(1).forEach((each, i) => assert.ok(sign * each >= sign * rates[i] * (1 - sign * 0.03),
      `${name}: ${which} ${values[i + 1]} gives ${each}, and ${values[i]} gave ${rates[i]}`));
  };
  for (const name of NAMES) {
    grows(name, { clients: 100 }, "delay", [1, 5, 20, 100], -1);
    grows(name, { clients: 50 }, "work", [0, 0.5, 2, 10], -1);
    grows(name, { clients: 100, delay: 10 }, "workers", [2, 10, 50, 100], 1);
    grows(name, { clients: 64, work: 2, apart: true }, "cores", [1, 2, 8], 1);
  }
});

test("chapter 1 serves one client at a time", () => {
  for (const clients of [1, 20, 300]) near(rate("iterative", { clients, delay: 10 }), 33.1, 0.02, `${clients} clients`);
  near(rate("iterative", { clients: 20, work: 5, cores: 8 }), 195, 0.05, "more cores");
});

test("a pool gives so many pages as it has workers, if Redis is far", () => {
  for (const name of ["preforking", "threading", "prethreading"]) {
    near(rate(name, { clients: 400, delay: 50 }), 100 / 0.15, 0.03, name);
    near(rate(name, { clients: 400, delay: 50, workers: 20 }), 20 / 0.15, 0.03, name);
  }
});

test("forking has a process for each connection, and 2,048 at most", () => {
  near(rate("forking", { clients: 200, delay: 100 }), 200 / 0.3, 0.1, "all at once");
  assert.equal(simulate("forking", { clients: 2100, delay: 300, apart: true, cores: 8 }).workers, 2048);
});

test("an event loop has everybody, and one core", () => {
  for (const name of ["poll", "epoll"]) {
    near(rate(name, { clients: 500, delay: 100 }), 500 / 0.3, 0.05, name);
    const busy = simulate(name, { clients: 100, work: 2, cores: 4, apart: true }).server.reduce((sum, each) => sum + each, 0);
    assert.ok(busy < 1.001, `${name}: ${busy} cores`);
  }
});

test("what has workers uses all cores", () => {
  for (const name of ["forking", "preforking", "threading", "prethreading"]) {
    near(rate(name, { clients: 400, work: 5, cores: 4, apart: true }), 4 * rate(name, { clients: 400, work: 5, apart: true }), 0.1, name);
  }
});

test("a team keeps connections for as long as nobody waits", () => {
  for (const name of ["preforking", "prethreading"]) {
    assert.ok(rate(name, { clients: 100, kept: true }) > 1.3 * rate(name, { clients: 120, kept: true }), name);
  }
});

test("the same seed gives the same run, and another one another", () => {
  for (const name of NAMES) {
    const [first, again, other] = [1, 1, 2].map((seed) => simulate(name, { clients: 40, delay: 1 }, derive(), seed));
    assert.deepEqual(first, again);
    assert.notEqual(first.rate, other.rate);
  }
});

test("15,000 clients need less than 200 ms of computing a frame", () => {
  const cpu = () => process.cpuUsage().user / 1000; // others may use the machine as well
  const began = cpu();
  const sims = NAMES.map((name) => new Sim(name, { clients: 15000 }));
  let longest = cpu() - began;
  for (let left = sims; left.length; ) { // as explore.js does it
    const frame = cpu();
    do left = left.filter((sim) => !sim.advance(2000)); while (left.length && cpu() - frame < 12);
    longest = Math.max(longest, cpu() - frame);
  }
  console.log(`15,000 clients: longest frame ${longest.toFixed(0)} ms, all seven ${(cpu() - began).toFixed(0)} ms`);
  assert.ok(longest < 200, `${longest} ms`);
});

test("the costs are those of the stored run", { skip: !fs.existsSync(COST) && "there is no stored run of cost" }, () => {
  assert.deepEqual(MEASURED, digest(fs.readFileSync(COST, "utf8")));
});

test("what is no run of cost is refused", () => {
  assert.throws(() => digest("server\tkind\nepoll\tab\n"), /no cell of iterative, ab, 1 clients/);
});
