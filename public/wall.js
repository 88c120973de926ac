// The wall: all seven servers side by side, each from its own /status.json.
//
// They are found by their ports, BASE+1 to BASE+7, on the host this page came from. BASE is in the
// address, as ?base=8000; or else it is this page's own port, less the chapter of the server that sent it.
import {
  Cells, Lanes, Minute, cpu, drawChart, element, fill, isLoop, many, memory, offerPause, rate, showCounts,
  tops, total, watch, whole,
} from "/board.js";

const SERVERS = ["iterative", "forking", "preforking", "threading", "prethreading", "poll", "epoll"];
const BORN = { forking: "forks", threading: "new threads" }; // what each connection is to these
const USUAL_BASE = 8000;
const OWN_MS = 2000; // for its own server to say who it is
const LOADS = [
  { text: "20", words: "CLIENTS=20" },
  { text: "500", words: "CLIENTS=500" },
  { text: "2,000", words: "CLIENTS=2000" },
  { text: "500 kept", words: "CLIENTS=500 KEPT=1" },
  { text: "500 idle", words: "HELD=500" },
];

const said = document.getElementById("said");

// ---- commands, ready to copy ---------------------------------------------------------------------

const command = (name, words, base) =>
  `make load SERVER=${name} ${words}` + (base === USUAL_BASE ? "" : ` BASE=${base}`);

/** Copies what stands in an element; where the browser does not allow that, selects it. */
async function copy(code) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    said.textContent = `Copied: ${code.textContent}`;
  } catch {
    getSelection().selectAllChildren(code);
    said.textContent = "Selected: copy it with Ctrl-C.";
  }
}

function offerLoads(card, name, base) {
  const code = card.querySelector(".load code");
  card.querySelector(".load").setAttribute("aria-label", `Commands that load ${name}`);
  code.textContent = command(name, LOADS[1].words, base);
  for (const load of LOADS) {
    const label = `Copy ${load.text}: ${command(name, load.words, base)}`;
    const looks = { type: "button", class: "small", "aria-label": label };
    const button = element("button", looks, load.text);
    button.addEventListener("click", () => {
      code.textContent = command(name, load.words, base);
      copy(code);
    });
    card.querySelector(".choices").append(button);
  }
}

// ---- one server ----------------------------------------------------------------------------------

class Server {
  minute = new Minute();
  status = null;

  constructor(name, chapter, base) {
    this.name = name;
    this.card = document.getElementById("server").content.cloneNode(true).firstElementChild;
    this.url = new URL(location.href);
    this.url.port = base + chapter;
    this.write(".chapter", `0${chapter}`);
    this.write(".name", name);
    this.at(".name").href = new URL("/status", this.url);
    this.at(".name").id = name;
    this.card.setAttribute("aria-labelledby", name);
    this.write(".born", BORN[name] ?? "connections");
    this.cells = new Cells(this.at(".cells"));
    this.lanes = new Lanes(this.at(".lanes"));
    offerLoads(this.card, name, base);
  }

  at(selector) {
    return this.card.querySelector(selector);
  }

  write(selector, text) {
    this.at(selector).textContent = text;
  }

  /** What is known stays in sight, dimmed, while it is not known to be true. */
  say(word, isRunning = false) {
    this.write(".word", word);
    this.card.classList.toggle("late", !isRunning);
  }

  answered(status) {
    if (status.server !== this.name) {
      this.say(`${status.server} is at this port`);
      return;
    }
    this.status = status;
    this.minute.add(status);
    this.say("running", true);
    this.showWorkers(status);
    fill(this.card, status);
    this.write(".memory", memory(status.pss_kib));
    drawAll();
  }

  late(seconds) {
    this.say(`busy for ${seconds} s`);
  }

  refused() {
    this.say("not running");
  }

  showWorkers(status) {
    this.cells.show(status);
    this.lanes.show(status);
    showCounts(this.at(".counts"), status);
    const most = status.workers_most > status.slots.length ? ` (of ${whole(status.workers_most)})` : "";
    const loop = isLoop(status) ? `, ${many(total(status), "connection")}` : "";
    const each = this.cells.each > 1 ? `; ${this.cells.each} a ${isLoop(status) ? "dot" : "cell"}` : "";
    this.write(".workers", many(status.slots.length, "worker") + most + loop + each);
  }

  /** The scales are common to all seven: higher is more, wherever it stands. */
  draw(top) {
    const { newest, spans } = this.minute;
    drawChart(this.at(".chart"), spans, rate, top.rate);
    const label = `Requests a second over the last minute, ${whole(top.rate)} at the top`;
    this.at(".chart").setAttribute("aria-label", label);
    if (!newest) {
      for (const figure of [".rate strong", ".cpu strong", ".connections"]) this.write(figure, "\u2013");
      return;
    }
    this.write(".rate strong", whole(newest.rate));
    this.write(".cpu strong", `${whole(cpu(newest))} %`);
    this.write(".parts", `kernel ${whole(newest.system)} %, own ${whole(newest.user)} %`);
    this.at(".bar .user").style.inlineSize = `${(100 * newest.user) / top.cpu}%`;
    this.at(".bar .system").style.inlineSize = `${(100 * newest.system) / top.cpu}%`;
    this.write(".connections", `${whole(newest.connections)}/s`);
  }
}

/** Lanes instead of cells, on all cards, and back. */
function offerLanes(button) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const on = document.body.classList.toggle("with-lanes");
    button.setAttribute("aria-pressed", String(on));
    for (const server of servers) if (server.status) server.showWorkers(server.status);
  });
}

// ---- all of them ---------------------------------------------------------------------------------

let servers = [];

function drawAll() {
  const top = tops(servers.map((server) => server.minute));
  for (const server of servers) server.draw(top);
}

function show(base) {
  const all = document.getElementById("all");
  all.textContent = command("all", "HELD=200 CLIENTS=50 KEPT=1", base);
  document.getElementById("copy-all").addEventListener("click", () => copy(all));
  offerPause(document.getElementById("pause"));
  offerLanes(document.getElementById("lanes"));
  servers = SERVERS.map((name, i) => new Server(name, i + 1, base));
  document.getElementById("servers").replaceChildren(...servers.map((server) => server.card));
  for (const server of servers) watch(new URL("/status.json", server.url), server);
}

/** Which of the seven brought this page? Its Server field says "ZeroHTTPd/1.0 (epoll)". */
async function ownBase() {
  try {
    const signal = AbortSignal.timeout(OWN_MS); // it may be busy, and the others are not
    const { headers } = await fetch(location.href, { method: "HEAD", cache: "no-store", signal });
    const [, name] = /\((\w+)\)/.exec(headers.get("Server"));
    return Number(location.port) - 1 - SERVERS.indexOf(name);
  } catch {
    return Number(location.port) - (Number(location.port) % 10) || USUAL_BASE;
  }
}

const asked = Number(new URLSearchParams(location.search).get("base"));
show(asked > 0 && asked <= 65528 ? asked : await ownBase());
