// Keeps /status up to date while it is visible. Without JavaScript the page is complete as well,
// but does not change.
import {
  Cells, Minute, cpu, drawChart, lasting, offerPause, rate, showCounts, tops, watch, whole,
} from "/board.js";

const MOST_ROWS = 200; // of the table: nobody could read more each second
const MOST_HEIGHT = 320; // of the cells

const at = (id) => document.getElementById(id);
const minute = new Minute();
const cells = new Cells(at("cells"), MOST_HEIGHT);

function write(texts) {
  for (const [id, text] of Object.entries(texts)) if (at(id)) at(id).textContent = text;
}

function showCharts() {
  const { newest, spans } = minute;
  const top = tops([minute]);
  write({
    rate: newest ? whole(newest.rate) : "\u2013",
    "rate-top": whole(top.rate),
    cpu: newest ? `${whole(cpu(newest))} %` : "\u2013",
    "cpu-system": newest ? `${whole(newest.system)} %` : "\u2013",
    "cpu-top": whole(top.cpu),
  });
  drawChart(at("rate-chart"), spans, rate, top.rate);
  drawChart(at("cpu-chart"), spans, cpu, top.cpu);
}

function showCells(status) {
  at("cells").removeAttribute("hidden"); // SVG has no property of that name
  cells.show(status);
  showCounts(at("counts"), status, true);
  at("each").hidden = cells.each === 1;
  write({ each: `Each cell stands for ${cells.each} of its kind.` });
}

function showFigures(status) {
  write({
    uptime: lasting(status.uptime_ms),
    workers: whole(status.slots.length),
    "workers-most": whole(status.workers_most),
    requests: whole(status.requests),
    connections: whole(status.connections),
    ...Object.fromEntries(Object.entries(status.responses).map(([kind, number]) => [kind, whole(number)])),
    user: whole(status.cpu_ms.user),
    system: whole(status.cpu_ms.system),
    processes: whole(status.processes),
    threads: whole(status.threads),
    memory: whole(status.pss_kib),
    descriptors: whole(status.descriptors),
    voluntary: whole(status.switches.voluntary),
    involuntary: whole(status.switches.involuntary),
  });
}

function row(slot) {
  const tr = document.createElement("tr");
  const id = document.createElement("th");
  const state = document.createElement("span");
  const request = document.createElement("code");
  id.scope = "row";
  id.textContent = slot.id;
  state.className = `letter ${slot.state}`;
  state.textContent = slot.state;
  request.textContent = slot.request;
  tr.append(id);
  const since = slot.since_ms === null ? "always" : lasting(slot.since_ms);
  for (const content of [state, since, request, whole(slot.requests), whole(slot.connections)]) {
    tr.insertCell().append(content);
  }
  return tr;
}

function showRows(status) {
  at("slots").replaceChildren(...status.slots.slice(0, MOST_ROWS).map(row));
  at("left-out").hidden = status.slots.length <= MOST_ROWS;
  write({ "left-out": `The first ${MOST_ROWS} of ${whole(status.slots.length)}.` });
}

offerPause(at("pause"));
watch("/status.json", {
  answered(status) {
    minute.add(status);
    at("charts").hidden = false;
    write({ pace: "Kept up to date each second while you look." });
    showFigures(status);
    showCells(status);
    showRows(status);
    showCharts();
    document.body.classList.remove("late");
  },
  late(seconds) {
    write({ pace: `Busy: it has not answered for ${seconds} s. What you see is that old.` });
    document.body.classList.add("late");
  },
  refused() {
    write({ pace: "It does not answer any more. What you see is its last answer." });
    document.body.classList.add("late");
  },
});
