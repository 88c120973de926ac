// Draws /status/, and keeps it up to date while it is visible.
import {
  Cells, Minute, cpu, drawChart, element, fill, isLoop, lasting, offerPause, rate, showCounts, tops, watch, whole,
} from "/board.js";

const MOST_ROWS = 200; // of the table: nobody could read more each second
const MOST_HEIGHT = 320; // of the cells

const at = (id) => document.getElementById(id);
const minute = new Minute();
const cells = new Cells(at("cells"), MOST_HEIGHT);

function write(texts) {
  for (const [id, text] of Object.entries(texts)) at(id).textContent = text;
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

function showWorkers(status) {
  const loop = isLoop(status);
  write({
    who: loop ? "Connections" : "Workers",
    workers: loop ? "All of them are in one event loop, which is the only worker. This page's own is one of them."
      : `${whole(status.slots.length)} now, of at most ${whole(status.workers_most)}. `
        + "This page's own request is on one of them.",
    kind: loop ? "Loop" : "Worker",
  });
  showCounts(at("counts"), status);
  at("cells").removeAttribute("hidden"); // SVG has no property of that name
  cells.show(status);
  at("each").hidden = cells.each === 1;
  write({ each: `Each cell stands for ${cells.each} of its kind.` });
}

function row(slot) {
  const state = element("span", { class: `letter ${slot.state}` }, slot.state);
  const since = slot.since_ms === null ? "always" : lasting(slot.since_ms);
  const request = element("code", {}, slot.request ?? "");
  const figures = [state, since, request, whole(slot.requests), whole(slot.connections)]
    .map((each) => element("td", {}, each));
  return element("tr", {}, element("th", { scope: "row" }, slot.id), ...figures);
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
    document.title = `${status.server} - ZeroHTTPd`;
    const { architecture, version, pid, uptime_ms: uptime } = status;
    write({ pace: `${architecture}. Version ${version}, process ${pid}, up for ${lasting(uptime)}.` });
    fill(document, status);
    showWorkers(status);
    showRows(status);
    showCharts();
    document.body.classList.remove("late");
  },
  late(seconds) {
    write({ pace: `Busy: it has not answered for ${seconds} s. What you see is that old.` });
    document.body.classList.add("late");
  },
  refused() {
    write({ pace: "It does not answer. (It answers other machines only with --status all.)" });
    document.body.classList.add("late");
  },
});
