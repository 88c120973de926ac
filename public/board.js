// board: what the two pages that watch servers share. /status/ (status.js) watches the one it comes
// from, /wall.html (wall.js) all seven. It asks, remembers a minute, and draws; whose page it is on
// it does not know.
//
// Only CSS knows a colour: what is drawn here carries the name of its state as its class.

/** What a worker may be doing, with the letter in its cell. The names are status.json's. */
export const STATES = [
  { name: "writing", letter: "W", words: "writing" },
  { name: "asking", letter: "A", words: "asking Redis" },
  { name: "reading", letter: "R", words: "reading" },
  { name: "fresh", letter: "F", words: "fresh" },
  { name: "lingering", letter: "L", words: "lingering" },
  { name: "idle", letter: "I", words: "idle" },
  { name: "waiting", letter: "\u2013", words: "waiting" },
];

const EVERY_MS = 1000;
const SOON_MS = 200; // between an answer that was late and the next question
const REFUSED_MS = 5000; // nobody listens: the browser itself complains of each attempt
const MINUTE = 60; // seconds that a chart shows

// ---- asking ------------------------------------------------------------------------------------

let isPaused = false;
const watches = new Set(); // what begins or ends each of them

/** Makes the button stop all that moves on the page, and go on. */
export function offerPause(button) {
  button.hidden = false;
  button.addEventListener("click", () => {
    isPaused = !isPaused;
    button.setAttribute("aria-pressed", String(isPaused));
    for (const look of watches) look();
  });
}

/**
 * Asks a server for its status each second, while the page is looked at. One question at a time: a
 * server that is busy is waited for, like by any client, and not asked again meanwhile.
 *
 * `seen` is told of what comes of it: seen.answered(status); seen.late(seconds), again each second
 * until the answer comes; seen.refused(), if there is no server, or none that answers us.
 */
export function watch(url, seen) {
  let looking = new AbortController();

  async function ask(signal) {
    while (!signal.aborted) {
      const began = performance.now();
      const waited = () => performance.now() - began;
      const clock = setInterval(() => seen.late(Math.floor(waited() / 1000)), 1000);
      const status = await question(url, signal);
      clearInterval(clock);
      if (signal.aborted) return; // nobody looks any more
      if (status) seen.answered(status);
      else seen.refused();
      const pause = status ? Math.max(SOON_MS, EVERY_MS - waited()) : REFUSED_MS;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  function look() {
    looking.abort();
    looking = new AbortController();
    if (!document.hidden && !isPaused) ask(looking.signal);
  }

  watches.add(look);
  document.addEventListener("visibilitychange", look);
  look();
}

/** The status; null if the question was refused, broken off, or given up by us. */
async function question(url, signal) {
  try {
    const response = await fetch(url, { cache: "no-store", credentials: "omit", signal });
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}

// ---- remembering -------------------------------------------------------------------------------

/** What of a span the charts show. */
export const rate = (span) => span.rate;
export const cpu = (span) => span.user + span.system;

/**
 * The last minute of a server, as spans between two answers: { from, to, rate, connections,
 * user, system }. Times are seconds by performance.now(); rate is requests a second, connections
 * are new ones a second, the last two percent of a processor. By the server's own clock, so that an answer that
 * comes late spoils nothing: it makes a long span, with the average over it.
 */
export class Minute {
  #last = null;
  spans = [];

  add(status) {
    const last = this.#last;
    this.#last = status;
    const now = performance.now() / 1000;
    if (!last || last.pid !== status.pid || last.uptime_ms >= status.uptime_ms) {
      this.spans = []; // the first answer, or that of another process
      return;
    }
    const seconds = (status.uptime_ms - last.uptime_ms) / 1000;
    const each = (value) => Math.max(0, value(status) - value(last)) / seconds;
    this.spans = this.spans.filter((span) => span.to > now - MINUTE);
    this.spans.push({
      from: now - seconds,
      to: now,
      rate: each((at) => at.requests),
      connections: each((at) => at.connections),
      user: each((at) => at.cpu_ms.user) / 10,
      system: each((at) => at.cpu_ms.system) / 10,
    });
  }

  /** The newest span; nothing before the second answer of a process. */
  get newest() {
    return this.spans.at(-1);
  }

  /** The most that a span came to. */
  most(value) {
    return Math.max(0, ...this.spans.map(value));
  }
}

// ---- counting ----------------------------------------------------------------------------------

/** The process or thread of an event loop has all connections; others have one at a time. */
export function isLoop(status) {
  return status.slots.length > 0 && status.slots[0].state === "loop";
}

/** How many are in each state, as [state, number] in the order of STATES: the connections of a loop,
 * which never waits for one of them, or the workers of all others. */
export function counts(status) {
  if (isLoop(status)) {
    return STATES.filter(({ name }) => name !== "waiting").map((state) => [state, status.now[state.name]]);
  }
  const number = {};
  for (const { state } of status.slots) number[state] = (number[state] ?? 0) + 1;
  return STATES.map((state) => [state, number[state.name] ?? 0]);
}

/** How many that is together. */
export const total = (status) => counts(status).reduce((sum, [, number]) => sum + number, 0);

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** 12345.6 as "12,346". */
export const whole = (number) => grouped.format(number);

/** KiB as "2.3 MiB". */
export const memory = (kib) => `${kib < 10240 ? (kib / 1024).toFixed(1) : whole(kib / 1024)} MiB`;

/** One worker, two workers. */
export const many = (number, noun) => `${whole(number)} ${noun}${number === 1 ? "" : "s"}`;

/** Milliseconds as "3 ms" or "1 h 2 min 3 s". */
export function lasting(ms) {
  if (ms < 1000) return `${whole(ms)}\u00a0ms`;
  const seconds = Math.floor(ms / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const parts = [[hours, "h"], [minutes, "min"], [seconds % 60, "s"]];
  while (parts[0][0] === 0) parts.shift();
  return parts.map(([number, unit]) => `${number}\u00a0${unit}`).join(" ");
}

/** All of it in a sentence, for those who do not see the cells. */
export function sentence(status) {
  const some = counts(status).filter(([, number]) => number);
  const words = some.map(([state, number]) => `${whole(number)} ${state.words}`).join(", ");
  const all = total(status);
  const whose = isLoop(status) ? `1 event loop, ${many(all, "connection")}` : many(all, "worker");
  return words ? `${whose}: ${words}` : whose;
}

/** Fills a list with the counts, each with its letter and word: what the cells say, and their legend. */
export function showCounts(list, status) {
  const rows = counts(status).filter(([, number]) => number);
  list.replaceChildren(...rows.map(([{ name, letter, words }, number]) => element("li", {},
    element("i", { class: `letter ${name}`, "aria-hidden": "true" }, letter), " ",
    element("b", {}, whole(number)), " ", words)));
}

/** Fills each element that has a data-field with the field of that name, "pid" or "responses.2xx". */
export function fill(root, status) {
  for (const place of root.querySelectorAll("[data-field]")) {
    const name = place.dataset.field;
    const value = name.split(".").reduce((object, key) => object[key], status);
    const show = typeof value === "string" ? String : name.endsWith("_ms") ? lasting : whole;
    place.textContent = show(value);
  }
}

// ---- drawing -----------------------------------------------------------------------------------

function made(namespace, name, attributes, inside) {
  const node = document.createElementNS(`http://www.w3.org/${namespace}`, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...inside);
  return node;
}

/** An element of HTML with these attributes, and with texts and elements inside. */
export const element = (name, attributes, ...inside) => made("1999/xhtml", name, attributes, inside);
export const shape = (name, attributes, ...inside) => made("2000/svg", name, attributes, inside);

/** The next of 1, 2, 5, 10, 20, 50 ... that is not below. */
function roundUp(number) {
  const ten = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 5, 10].map((step) => step * ten).find((step) => step >= number);
}

/** The top of the charts of these minutes, a round number of requests; and of their processor time,
 * whole processors. */
export function tops(minutes) {
  const most = (value, least) => Math.max(least, ...minutes.map((minute) => minute.most(value)));
  return { rate: roundUp(most(rate, 100)), cpu: 100 * Math.ceil(most(cpu, 1) / 100) };
}

/** Draws a minute, whose right end is now: value(span) is as high as the picture if it is `most`.
 * Each span is as long as it took, so that a server that kept us waiting shows a level piece. */
export function drawChart(svg, spans, value, most) {
  const now = performance.now() / 1000;
  let end = null;
  let line = "";
  let area = "";
  for (const span of spans) {
    const [from, to] = [span.from, span.to].map((at) => Math.max(0, MINUTE - (now - at)).toFixed(2));
    const y = (1 - Math.min(1, value(span) / most)).toFixed(4);
    const goesOn = end !== null && span.from - end < 1.5;
    line += goesOn ? `V${y}H${to}` : `M${from} ${y}H${to}`;
    area += goesOn ? `V${y}H${to}` : `${end === null ? "" : "V1z"}M${from} 1V${y}H${to}`;
    end = span.to;
  }
  svg.setAttribute("viewBox", `0 0 ${MINUTE} 1`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.replaceChildren(
    shape("path", { class: "area", d: area && `${area}V1z` }),
    shape("path", { class: "line", d: line }),
  );
}

const LARGEST = 28; // a cell and the gap beside it, in CSS pixels
const LEAST = 5; // smaller is no cell any more: then one stands for several
const LETTERED = 13; // room enough for its letter

/**
 * A picture of all workers: a square for each, which stays in its place for as long as the worker
 * lives. Or of an event loop: a frame, which is the one worker, and in it a dot for each connection.
 *
 * One path and one text for each state, however many are in it: 16,384 workers are a long string
 * and not 16,384 elements. Where even small cells do not fit, one stands for 2, 4, 8 ... of its state.
 */
export class Cells {
  #svg;
  #status = null;
  #places = new Map(); // id of a worker -> its place, 0 at the top left
  #fit;
  each = 1; // how many a cell stands for

  /** The picture is as large as the sheet says; with `fit`, as high as it must be and no higher
   * than so many pixels. */
  constructor(svg, fit = 0) {
    this.#svg = svg;
    this.#fit = fit;
    new ResizeObserver(() => this.#draw()).observe(svg);
  }

  show(status) {
    this.#status = status;
    this.#svg.setAttribute("aria-label", sentence(status));
    if (!isLoop(status)) this.#settle(status.slots.map((slot) => slot.id));
    this.#draw();
  }

  /** Gives newcomers the first free places. */
  #settle(ids) {
    const alive = new Set(ids);
    for (const id of this.#places.keys()) if (!alive.has(id)) this.#places.delete(id);
    const isFarApart = Math.max(0, ...this.#places.values()) > 4 * ids.length + 64;
    if (isFarApart) this.#places.clear(); // a crowd has left
    const taken = new Set(this.#places.values());
    let free = 0;
    for (const id of ids) {
      if (this.#places.has(id)) continue;
      while (taken.has(free)) free += 1;
      this.#places.set(id, free);
      taken.add(free);
    }
  }

  #draw() {
    const [width, most] = [this.#svg.clientWidth, this.#fit || this.#svg.clientHeight];
    const loop = this.#status && isLoop(this.#status);
    const inset = loop ? 5 : 1;
    const room = { width: width - 2 * inset, height: most - 2 * inset };
    if (!this.#status || room.width < LEAST || room.height < LEAST) return;
    const needed = loop ? total(this.#status) : 1 + Math.max(0, ...this.#places.values());
    const pitch = this.#pitch(needed, room);
    const columns = Math.floor(room.width / pitch);
    const height = this.#fit ? Math.ceil(needed / this.each / columns) * pitch + 2 * inset : most;
    const at = (place) => [place % columns, Math.floor(place / columns)].map((n) => inset + n * pitch);
    const drawn = loop ? [frame(width, height)] : [];
    for (const [state, places] of this.#inStates(loop)) {
      drawn.push(cells(state.name, places.map(at), pitch, loop));
      if (pitch >= LETTERED) drawn.push(letters(state, places.map(at), pitch));
    }
    this.#svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    if (this.#fit) this.#svg.style.blockSize = `${height}px`;
    this.#svg.replaceChildren(...drawn);
  }

  /** How large a cell can be. Sets `each`. Room is made for the next power of two, so that a crowd
   * that comes and goes does not make the cells pulsate. */
  #pitch(needed, { width, height }) {
    const fitting = (pitch) => Math.floor(width / pitch) * Math.floor(height / pitch);
    this.each = 1;
    while (needed / this.each > fitting(LEAST)) this.each *= 2;
    const wanted = Math.min(fitting(LEAST), 2 ** Math.ceil(Math.log2(Math.max(1, needed / this.each))));
    let pitch = LARGEST;
    while (pitch > LEAST && fitting(pitch) < wanted) pitch -= 0.5;
    return pitch;
  }

  /** [state, places] for each state that somebody is in. */
  #inStates(loop) {
    if (!loop && this.each === 1) {
      const places = new Map(STATES.map((state) => [state.name, []]));
      for (const slot of this.#status.slots) places.get(slot.state)?.push(this.#places.get(slot.id));
      return STATES.map((state) => [state, places.get(state.name)]).filter(([, taken]) => taken.length);
    }
    let next = 0;
    return counts(this.#status).flatMap(([state, number]) => {
      const here = Math.ceil(number / this.each);
      next += here;
      return here ? [[state, Array.from({ length: here }, (_, i) => next - here + i)]] : [];
    });
  }
}

const frame = (width, height) =>
  shape("rect", { class: "loop", x: 1, y: 1, width: width - 2, height: height - 2, rx: 6 });

function cells(name, corners, pitch, round) {
  const size = pitch < 8 ? pitch - 1 : pitch * 0.86;
  const r = size / 2;
  const one = round
    ? ([x, y]) => `M${x} ${y + r}a${r} ${r} 0 1 0 ${size} 0a${r} ${r} 0 1 0 ${-size} 0`
    : ([x, y]) => `M${x} ${y}h${size}v${size}h${-size}z`;
  return shape("path", { class: name, d: corners.map(one).join("") });
}

/** One text for all of them: SVG takes a list of places, one for each letter. */
function letters(state, corners, pitch) {
  const middle = pitch * 0.43;
  const xs = corners.map(([x]) => (x + middle).toFixed(1)).join(" ");
  const ys = corners.map(([, y]) => (y + middle * 1.5).toFixed(1)).join(" ");
  const text = state.letter.repeat(corners.length);
  return shape("text", { class: state.name, x: xs, y: ys, "font-size": (pitch * 0.58).toFixed(1) }, text);
}
