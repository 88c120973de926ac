// explore: a page on which one plays with the model. model.js computes, and this draws. A change starts seven
// simulations anew. Each frame lets them go on for some milliseconds and draws what is known so far.
import { lasting, shape, whole } from "./board.js";
import { COST_RUN, SERVERS, SETTINGS, Sim, derive, digest } from "./model.js";

const NAMES = Object.keys(SERVERS);
const [FRAME_MS, EVENTS] = [12, 500]; // of computing; of one simulation at a time
const SOON_MS = 500; // what is computed until then needs no words
const STOPS = { // of the sliders
  clients: [1, 2, 5, 10, 20, 50, 100, 200, 300, 500, 1000, 2000, 3000, 5000, 8000, 10000, 15000],
  delay: [0, 0.1, 0.5, 1, 2, 5, 10, 20, 50, 100, 150, 300],
  work: [0, 0.1, 0.5, 1, 2, 5, 10, 50, 100],
  workers: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000],
  cores: [1, 2, 4, 8, 16, 32, 64],
};
const DOING = { // what a lane shows, of workers and of clients
  running: "running", ready: "ready, waits for a core", redis: "waits for Redis", room: "waits for a connection to Redis",
  arrival: "waits for a client", bytes: "waits for its client", several: "waits for anything to happen",
  queued: "queued, or on its way", served: "served", answered: "answered, and has not read it yet",
};

const state = { ...SETTINGS, lanes: "preforking" };
let costs = derive();
let sims = [];

const $ = (id) => document.getElementById(id);
const grouped = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const ms = (number) => (number < 10000 ? `${number < 1 ? number.toFixed(2) : grouped.format(number)}\u00a0ms` : lasting(number));
const percent = (share) => `${Math.round(100 * share)}\u00a0%`;

const cell = (name, words, more = {}) => Object.assign(document.createElement(name), { textContent: words, ...more });
function row(name, ...cells) {
  const line = document.createElement("tr");
  line.append(cell("th", name, { scope: "row" }), ...cells.map((each) => (each instanceof Node ? each : cell("td", each))));
  return line;
}

// ---- the settings, in the address --------------------------------------------------------------

const TICKS = ["kept", "apart"];
const changed = () => [...Object.keys(STOPS), ...TICKS].filter((name) => state[name] !== SETTINGS[name])
  .map((name) => `${name}=${Number(state[name])}`);

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const [name, stops] of Object.entries(STOPS)) {
    const number = Number(given.get(name) ?? SETTINGS[name]);
    state[name] = stops.includes(number) ? number : SETTINGS[name];
  }
  for (const name of TICKS) state[name] = given.get(name) === "1";
  if (NAMES.includes(given.get("lanes"))) state.lanes = given.get("lanes");
  change();
}

function change() {
  for (const [name, stops] of Object.entries(STOPS)) {
    const words = `${state[name] < 1 ? state[name] : whole(state[name])}${["delay", "work"].includes(name) ? " ms" : ""}`;
    Object.assign($(name), { max: stops.length - 1, value: stops.indexOf(state[name]), ariaValueText: words });
    $(`${name}-is`).textContent = words;
  }
  for (const name of TICKS) $(name).checked = state[name];
  $("lanes").value = state.lanes;
  restart();
}

function offerControls() {
  const link = () => history.replaceState(null, "", `#${[...changed(), `lanes=${state.lanes}`].join("&")}`);
  $("lanes").append(...NAMES.map((name) => cell("option", name)));
  $("lanes").addEventListener("change", () => {
    state.lanes = $("lanes").value;
    link();
    drawLanes();
  });
  $("settings").addEventListener("input", ({ target }) => {
    state[target.id] = target.id in STOPS ? STOPS[target.id][target.value] : target.checked;
    link();
    change();
  });
  $("file").addEventListener("change", async () => {
    const [file] = $("file").files;
    try {
      costs = derive(digest(await file.text()));
      $("whose").textContent = `The costs are those of your file, ${file.name}.`;
      restart();
    } catch (error) {
      $("whose").textContent = `${file.name} is not the cells.tsv of a run of compare --levels 1,100,1000: ${error.message}.`;
    }
  });
  addEventListener("hashchange", readAddress);
  addEventListener("resize", () => document.body.dataset.done && drawLanes());
}

/** Computes from the beginning. */
function restart() {
  const { lanes, ...settings } = state;
  // Where the clients and Redis share the machine, they have one of its cores, as in the stored runs, and
  // a relay makes the distance. It takes CPU time, too.
  settings.shared = state.cores > 1 && !state.apart;
  settings.relay = state.delay > 0 && !state.apart;
  const mine = NAMES.map((name) => new Sim(name, settings, costs));
  sims = mine;
  const begun = performance.now();
  const frame = () => {
    if (sims !== mine) return; // something has changed
    const start = performance.now();
    let left;
    do {
      left = mine.filter((sim) => !sim.isOver);
      for (const sim of left) sim.isOver = sim.advance(EVENTS);
    } while (left.length && performance.now() - start < FRAME_MS);
    drawTable(performance.now() - begun > SOON_MS ? mine.filter((sim) => !sim.isOver).length : 0);
    if (left.length) return requestAnimationFrame(frame);
    drawLanes();
    document.body.dataset.done = location.hash; // for those who wait for it
  };
  delete document.body.dataset.done;
  frame();
}

// ---- the table, whose rates are the chart ------------------------------------------------------

function limit({ server, other }) {
  if (other > 0.95) return state.apart ? "Redis' core" : "the other core";
  return server.some((busy) => busy > 0.95) ? `${server.every((busy) => busy > 0.95) ? "" : "one of "}its cores` : "waiting";
}

function drawTable(underWay) {
  const results = sims.map((sim) => sim.result);
  const most = Math.max(1, ...results.map((result) => result?.rate ?? 0));
  const wanted = changed().join("&");
  const stored = [...document.querySelectorAll("#stored [data-at]")].find((line) => line.dataset.at === wanted);
  $("known").textContent = underWay ? `Still computing ${underWay} of the seven. Their figures may change.`
    : stored ? `Measured as well, in the stored run “${stored.dataset.run}”. A run begins with a ` +
    "rush of all clients, which the model leaves out. So the two may differ by more than the errors below."
    : "Only computed. Nobody has measured these settings, so trust the shape more than the figure.";
  $("results").replaceChildren(...results.map((result, i) => {
    if (!result) return row(NAMES[i], "...");
    const rate = cell("td", `${grouped.format(result.rate)} pages/s`, { className: "rate" });
    const bar = rate.appendChild(cell("span", "", { className: "level", ariaHidden: "true" }));
    bar.style.inlineSize = `${(100 * result.rate) / most}%`;
    const measured = Number(stored?.cells[i + 1].textContent.replaceAll(",", ""));
    const off = result.rate / measured - 1;
    const own = state.cores > 1 && !state.apart ? result.server.slice(0, -1) : result.server; // the last is the other
    const busy = own.reduce((sum, each) => sum + each, 0);
    return row(NAMES[i], rate,
      measured ? `measured ${whole(measured)} (${off < 0 ? "\u2212" : "+"}${percent(Math.abs(off))})` : "not measured",
      `${ms(result.p50)}, p99\u00a0${ms(result.p99)}`, `server\u00a0${percent(busy)}, other\u00a0${percent(result.other)}`,
      limit(result), `${grouped.format(result.memory)}\u00a0MiB`);
  }));
}

// ---- lanes -------------------------------------------------------------------------------------

const [LEFT, CLIENT, LANE] = [96, 14, 24];

function drawLanes() {
  const sim = sims[NAMES.indexOf(state.lanes)];
  const answers = sim.spans.filter((span) => span.kind === "answered");
  const end = (answers[Math.min(5, answers.length - 1)] ?? sim.spans.at(-1))?.to ?? 1; // after six answers
  const all = sim.spans.filter((span) => span.kind in DOING && span.from < end)
    .map((span) => ({ ...span, to: Math.min(span.to, end) })).sort((a, b) => a.from - b.from);
  const who = ({ side, number }) => (sim.kind.loop && side === "worker" ? "the loop" : `${side} ${number + 1}`);
  const width = Math.min(760, Math.max(320, $("picture").getBoundingClientRect().width)); // on a phone, letters keep their size
  const x = (at) => LEFT + ((width - LEFT - 16) * at) / end;
  const lanes = Map.groupBy(all, who); // in this order: clients, then workers
  const parts = [];
  let y = 10;
  for (const name of [...lanes.keys()].sort()) {
    const isClient = name.startsWith("client");
    parts.push(shape("text", { class: "lane", x: LEFT - 8, y: y + (isClient ? 9 : 13) }, name));
    for (const { kind, from, to } of lanes.get(name)) {
      const made = isClient ? shape("path", { class: `client ${kind}`, d: `M${x(from)} ${y + 5}H${x(to)}` })
        : shape("rect", { class: kind, x: x(from), y, width: Math.max(0.4, x(to) - x(from)), height: LANE - 6 });
      made.append(shape("title", {}, `${DOING[kind]}, ${ms((to - from) / 1000)}`));
      parts.push(made);
      if (kind === "answered") parts.push(shape("circle", { class: "answer", cx: x(from), cy: y + 5, r: 2.8 }));
    }
    y += isClient ? CLIENT : LANE;
  }
  const steps = width < 500 ? 2 : 4;
  for (let i = 0; i <= steps; i++) {
    const at = (end * i) / steps;
    parts.unshift(shape("path", { class: "grid", d: `M${x(at)} 4V${y}` }));
    parts.push(shape("text", { class: "tick", x: x(at), y: y + 18 }, ms(at / 1000)));
  }
  $("picture").setAttribute("viewBox", `0 0 ${width} ${y + 26}`);
  $("picture").ariaLabel = `What some clients and workers of ${sim.name} do, for ${ms(end / 1000)}`;
  $("picture").replaceChildren(...parts);
  $("spans").replaceChildren(...all.map((span) =>
    row(who(span), DOING[span.kind], `from ${ms(span.from / 1000)}`, `for ${ms((span.to - span.from) / 1000)}`)));
}

$("app").hidden = false;
$("whose").textContent = `The costs are those of ${COST_RUN}.`;
for (const kind of Object.keys(DOING).slice(0, -3)) {
  $("key").appendChild(cell("li", ` ${DOING[kind]}`)).prepend(cell("i", "", { className: `key ${kind}` }));
}
offerControls();
readAddress();
