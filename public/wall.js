// The wall: all seven servers side by side, each from its own /status.json.
//
// They are found by their ports, BASE+1 to BASE+7, on the host this page came from. BASE is in the
// address, as ?base=8005; or else it is this page's own port, down to a multiple of ten.
import {
  Cells, Minute, cpu, drawChart, fill, isLoop, many, memory, offerPause, rate, showCounts,
  tops, total, watch, whole,
} from "/board.js";

const SERVERS = ["iterative", "forking", "preforking", "threading", "prethreading", "poll", "epoll"];
const BORN = { forking: "forks", threading: "new threads" }; // what each connection is to these
const USUAL_BASE = 8000;
const asked = Number(new URLSearchParams(location.search).get("base"));
const base = asked > 0 && asked <= 65528 ? asked : Number(location.port) - (Number(location.port) % 10);
let servers = [];

// ---- one server ----------------------------------------------------------------------------------

class Server {
  minute = new Minute();

  constructor(name, chapter) {
    this.name = name;
    this.card = document.getElementById("server").content.cloneNode(true).firstElementChild;
    this.url = new URL(location.href);
    this.url.port = base + chapter;
    this.write(".chapter", `0${chapter}`);
    this.write(".name", name);
    this.at(".name").href = new URL("/status/", this.url);
    this.at(".name").id = name;
    this.card.setAttribute("aria-labelledby", name);
    this.write(".born", BORN[name] ?? "connections");
    this.cells = new Cells(this.at(".cells"));
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

// ---- all of them ---------------------------------------------------------------------------------

function drawAll() {
  const top = tops(servers.map((server) => server.minute));
  for (const server of servers) server.draw(top);
}

if (base !== USUAL_BASE) document.getElementById("all").append(` BASE=${base}`);
offerPause(document.getElementById("pause"));
servers = SERVERS.map((name, i) => new Server(name, i + 1));
document.getElementById("servers").replaceChildren(...servers.map((server) => server.card));
for (const server of servers) watch(new URL("/status.json", server.url), server);
