// model: the seven servers as a simulation one can read. It draws nothing and knows no page, so it
// runs under node as well.
//
// Each of so many clients asks for a page, reads the answer and asks again at once. A page takes CPU
// time from the program that plays the clients (ab or wrk), from the server, and three times from
// Redis. All else is waiting: for a core, for a worker, for the distance to Redis.
//
// - Time jumps from one event to the next, in microseconds. An event is the end of a turn on a core,
//   or the arrival of a reply that was under way.
// - A core runs one task at a time, for a time slice at most. Other tasks wait in its run queue.
// - Redis, an event loop and the load generator handle all that has come before they look again.
// - `loadtest/compare --levels 1,100,1000` has measured every cost. Not measured are the constants below, and that one half of what
//   a new process or thread costs is due when it is made, the other half when it ends.
//
// It leaves out caches that grow cold, packets, queues that overflow, and the rest of a real machine.

const SLICE_US = 700; // Linux' base slice
const SPREAD = 0.3; // a turn takes up to so much more or less than its mean
const QUERIES = 3; // to Redis, for a page
const WAKES = 2 * (QUERIES + 1); // of a core, for a page for one client
// What part of a page's CPU time comes before the first query, and after each: by the system calls there.
const SHARES = { worker: [1 / 3, 1 / 6, 1 / 6, 1 / 3], loop: [0.45, 0.05, 0.05, 0.45] };
const ACCEPTING = 0.15; // of a page's CPU time: to accept a client, and to find no request yet
const CONNECTING = 3 / 4; // of what a client costs over a new connection: before it can send its request

/** The seven, and how each serves. team: so many workers, from the start. maker: the parent makes a
 * worker for each connection, `most` at a time. pool: so many connections to Redis for all. loop: one
 * process that never waits for one client alone. */
export const SERVERS = {
  iterative: { team: () => 1 },
  forking: { maker: true, most: 2048 },
  preforking: { team: ({ workers }) => workers },
  threading: { maker: true, most: Infinity, pool: ({ workers }) => workers },
  prethreading: { team: ({ workers }) => workers },
  poll: { loop: true },
  epoll: { loop: true },
};

/** What can be set. delay, work: milliseconds. kept: connections are. apart: the clients cost nothing here, and
 * Redis has a core of its own. relay: loadtest/slow_redis.c makes the distance, and takes CPU time. shared: the
 * last of the server's cores is that of Redis and the clients. pages: so many of each client are measured, on
 * the average; of a large crowd, one. */
export const SETTINGS = {
  clients: 100, delay: 0, work: 0, workers: 100, cores: 1, kept: false, apart: false, relay: false, shared: false, pages: 3,
};

// ---- costs -------------------------------------------------------------------------------------

export const COST_RUN = "loadtest/compare --levels 1,100,1000, 29 November 2026, Intel Xeon, 2 cores, Linux 6.18";

/** Of each server, over new connections (ab) and then over kept ones (wrk), for 1, 100 and 1,000 clients:
 * CPU microseconds of a page, how often it waits (null: not counted), and microseconds of the other core.
 * digest() makes it from a run's cells.tsv. */
export const MEASURED = {
  iterative: [73.8, 4.02, 99, 62.6, 3.02, 88.1, 64.4, 3.02, 86.9, 103.6, 4.02, 94.2, 62.9, 3.02, 86.7, 65.3, 3.04, 94.8],
  forking: [221.9, 5.01, 104.1, 207.3, 4.1, 72.5, 205.9, 4.13, 79.1, 98.7, 4.01, 76.7, 40.9, 4.04, 33.3, 53.7, 4.21, 39],
  preforking: [82.2, 4.17, 97.4, 38.9, 3.86, 38.8, 40, 3.83, 41.6, 92.5, 4.24, 94, 38.9, 4.06, 33.6, 40.5, 3.54, 40.9],
  threading: [84.3, 4.03, 97.7, 41.5, 3.14, 38.3, 51.1, 4.04, 43.3, 98.9, 4.01, 85.6, 27.3, 4.04, 26.8, 46.4, 5.73, 38.3],
  prethreading: [78.7, 4.16, 110.2, 42.2, 6.32, 46, 36.7, 4.85, 44, 95.8, 4.21, 91, 27.3, 4.07, 27.2, 35.4, 4.57, 38.9],
  poll: [77.3, 4, 103.3, 22.5, 0.35, 29.8, 21.5, 0.01, 23.2, 110.5, 4, 93.3, 6.1, 0.03, 6.5, 6.1, 0, 6.4],
  epoll: [77.5, 4, 96, 18.9, 0.6, 31.7, 15.2, 0.45, 28.1, 104.2, 4, 98.8, 6.2, 0.04, 6.9, 6.3, 0.01, 7],
  floor: [23.8, null, 37.2, 10.3, null, 18.8, 11, null, 20.6, 24.6, null, 20.5, 3.9, null, 4.7, 3.7, null, 6.4],
  waking: [8.3],
};
const [ALONE, BUSY, CROWD, CPU, WAITS, OTHER] = [0, 1, 2, 0, 1, 2]; // the levels, and the figures of each
/** MiB at rest and of each worker, KiB of each connection: memory.tsv of the same run. */
const MEMORY = {
  iterative: [0.6, 0, 0], forking: [0.6, 0, 140], preforking: [0.6, 0.11, 24], threading: [0.6, 0, 39],
  prethreading: [0.6, 0.03, 12], poll: [0.6, 0, 5], epoll: [0.6, 0, 5],
};

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const middle = (values) => values.sort((a, b) => a - b)[(values.length - 1) >> 1];

/** MEASURED, from the cells.tsv of `compare --levels 1,100,1000`: the median of its rounds. Throws if a cell is missing. */
export function digest(text) {
  const [header, ...lines] = text.trim().split("\n").map((line) => line.split("\t"));
  const cells = lines.map((line) => Object.fromEntries(header.map((name, i) => [name, line[i]])));
  const figures = (name, tool, clients) => {
    const found = cells.filter((cell) => cell.subject === name && cell.generator === tool
      && cell.clients === clients && cell.requests && !cell.wrong);
    if (!found.length) throw new Error(`no cell of ${name}, ${tool}, ${clients} clients`);
    const median = (figure, digits = 1) => Number(middle(found.map(figure)).toFixed(digits));
    const isOne = ({ client_core_busy, redis_core_busy }) => client_core_busy === redis_core_busy; // core for both
    const busy = (cell) => Number(cell.client_core_busy) + (isOne(cell) ? 0 : Number(cell.redis_core_busy));
    const waits = found[0].voluntary_switches ? median((cell) => cell.voluntary_switches / cell.requests, 2) : null;
    return [median((cell) => cell.server_cpu_us / cell.requests), waits,
      median((cell) => (busy(cell) * 1e4) / cell.requests_per_second), median((cell) => 1e6 / cell.requests_per_second)];
  };
  const idle = []; // how long neither core works, of a page for one client
  const row = (name) => ["ab", "wrk"].flatMap((tool) => ["1", "100", "1000"].flatMap((clients) => {
    const [cpu, waits, other, page] = figures(name, tool, clients);
    if (clients === "1" && name in SERVERS) idle.push(page - cpu - other);
    return [cpu, waits, other];
  }));
  const rows = Object.fromEntries([...Object.keys(SERVERS), "floor"].map((name) => [name, row(name)]));
  return { ...rows, waking: [Number((mean(idle) / WAKES).toFixed(1))] };
}

/** What each step costs, in microseconds. A pair is for up to 100 clients, and for 1,000. */
export function derive(table = MEASURED) {
  const figure = (name, tool, level, which) => table[name][(tool === "wrk" ? 9 : 0) + 3 * level + which];
  const pair = (which) => [BUSY, CROWD].map(which);
  const redis = (name, tool, level) => // for one query: what the other core does beside the clients' work
    (figure(name, tool, level, OTHER) - figure("floor", tool, level, OTHER)) / QUERIES;
  const own = ["preforking", "threading", "prethreading"]; // each worker has a connection to Redis
  const ask = mean(own.map((name) => redis(name, "ab", BUSY)));
  // Waking a core that is idle, for the waker. With 1,000 clients epoll sleeps for each page, and poll never.
  const more = (which) => figure("epoll", "ab", CROWD, which) - figure("poll", "ab", CROWD, which);
  const rouse = more(WAITS) > 0.1 ? Math.max(0, more(OTHER) / more(WAITS)) : 0;
  const tool = (by) => ({
    page: pair((level) => figure("floor", by, level, OTHER)),
    wake: Math.max(0, figure("floor", by, ALONE, OTHER) - figure("floor", by, BUSY, OTHER) - rouse),
  });
  // A round of a loop: the system calls that a thread makes as well, and for each query.
  const round = (figure("threading", "wrk", BUSY, CPU) - figure("epoll", "wrk", BUSY, CPU)) / (QUERIES + 1);

  const server = (name, by) => {
    const { loop, team } = SERVERS[name];
    const cpu = (level) => figure(name, by, level, CPU);
    const waits = (level) => figure(name, by, level, WAITS);
    if (loop) { // a straight line through two measurements: CPU time = page + waits x what waking costs
      const waking = (cpu(ALONE) - cpu(BUSY)) / (waits(ALONE) - waits(BUSY));
      return { page: pair((level) => cpu(level) - waits(level) * waking), wake: Math.max(0, waking - round) };
    }
    const known = (level) => (team && by === "wrk" ? BUSY : level); // with 1,000 a team keeps no connection
    return { page: pair((level) => cpu(known(level))), wake: Math.max(0, cpu(ALONE) - cpu(BUSY)) / (QUERIES + 1),
      ask: by === "wrk" && name !== "iterative" ? pair((level) => redis(name, by, known(level))) : [ask, ask] };
  };
  return {
    rouse, round, waking: Math.max(0, table.waking[0]),
    tool: { new: tool("ab"), kept: tool("wrk") },
    redis: {
      ask, // a query that comes by itself, while Redis is busy; and one more in a batch
      command: { new: redis("poll", "ab", CROWD), kept: mean(["poll", "epoll"].map((name) => redis(name, "wrk", BUSY))) },
      wake: Math.max(0, mean(["iterative", ...own].map((name) => redis(name, "ab", ALONE))) - ask - rouse),
      connect: QUERIES * (redis("forking", "ab", BUSY) - redis("preforking", "ab", BUSY)),
    },
    servers: Object.fromEntries(Object.keys(SERVERS).map((name) => [name, { new: server(name, "ab"), kept: server(name, "wrk") }])),
  };
}

/** Between what was measured at 100 and at 1,000; beyond, as there. */
const at = ([busy, crowd], number) => busy + Math.min(1, Math.max(0, Math.log10(number / 100))) * (crowd - busy);

/** The part of a page's CPU time that its next step takes. */
const share = (shares, { step, sent, opened }) =>
  (sent ? shares[step - 1] - (step === 1 && opened ? ACCEPTING : 0) : ACCEPTING);

// ---- events, cores, loops ----------------------------------------------------------------------

/** First in, first out. (shift() of an array of thousands would take four times as long for all.) */
class Line {
  #items = [];
  #gone = 0;
  get length() { return this.#items.length - this.#gone; }
  push(item) { this.#items.push(item); }
  shift() {
    const isLong = this.#gone > 64 && 2 * this.#gone > this.#items.length;
    if (isLong) [this.#items, this.#gone] = [this.#items.slice(this.#gone), 0];
    return this.length ? this.#items[this.#gone++] : undefined;
  }
}

/** What will happen, the next event last. Of two at the same time, the one added first happens first. */
class Events {
  #list = [];
  add(time, happen) {
    let i = this.#list.length;
    while (i && this.#list[i - 1].time <= time) i -= 1; // not far: most events are soon
    this.#list.splice(i, 0, { time, happen });
  }
  take() { return this.#list.pop(); }
}

/** A process or a thread: so many microseconds of a core that it still wants, and what it does then. */
class Task {
  core = null; // on which it runs
  left = 0;
  debt = 0; // for waking others; it pays with its next turn
  constructor(sim, cores, wake, number = Infinity) {
    Object.assign(this, { sim, cores, wake, number, side: "worker" });
  }
  want(micros, then) {
    this.left = micros * (1 - SPREAD + 2 * SPREAD * this.sim.random()) + this.debt;
    this.debt = 0;
    this.then = then;
    if (!this.core) this.sim.place(this, true);
  }
}

class Core {
  task = null;
  queue = new Line();
  busy = 0; // microseconds
  constructor(sim) {
    this.sim = sim;
    this.happen = () => this.#ended();
  }
  start(task) {
    this.task = task;
    task.core = this;
    this.used = 0; // of its time slice
    this.sim.note(task, "running");
    this.#goOn();
  }
  #goOn() {
    this.run = Math.min(this.task.left, SLICE_US - this.used);
    this.sim.events.add(this.sim.now + this.run, this.happen);
  }
  #ended() {
    const { task, sim } = this;
    this.busy += this.run;
    this.used += this.run;
    task.left -= this.run;
    if (task.left < 1e-6) { // it has what it wanted; perhaps it wants more
      task.left = 0;
      sim.actor = task;
      task.then();
      sim.actor = null;
    }
    const isOver = this.used > SLICE_US - 1e-6;
    if (isOver && !this.queue.length) this.used = 0;
    if (task.left && !(isOver && this.queue.length)) return this.#goOn();
    task.core = this.task = null;
    if (task.left) sim.place(task, false);
    if (this.task) return; // it came back at once
    const from = this.queue.length || !sim.cores.includes(this) ? this // or else it helps another core
      : sim.cores.find((each) => each !== sim.other && each.queue.length);
    if (from?.queue.length) this.start(from.queue.shift());
  }
}

/** A process that handles whatever has come, round by round, and sleeps if nothing has. `can`: what an item
 * costs, how it is handled, what happens when a round is over, and what a round costs by itself. */
class Loop extends Task {
  inbox = new Line();
  asleep = true;
  constructor(sim, cores, wake, can, number) {
    super(sim, cores, wake, number);
    this.can = { over() {}, round: 0, ...can };
    this.begin = () => this.#begin();
    this.handled = () => this.#handled();
  }
  give(item) {
    this.inbox.push(item);
    if (this.asleep) this.want(0, this.begin);
    this.asleep = false;
  }
  #begin() {
    this.due = this.inbox.length; // in this round
    this.#next(this.can.round);
  }
  #next(more) {
    this.item = this.inbox.shift();
    this.want(more + this.can.cost(this.item), this.handled);
  }
  #handled() {
    this.can.handle(this.item);
    this.due -= 1;
    if (this.due) return this.#next(0);
    this.can.over();
    if (this.inbox.length) return this.#begin();
    this.asleep = true;
    this.sim.note(this, "several");
  }
}

// ---- one server under load ---------------------------------------------------------------------

const SHOWN = 5; // clients, and workers, that the picture shows
const MOST_SPANS = 2000;

/** One of the seven, with its clients and its Redis. advance() lets time pass; `result` is how it went. */
export class Sim {
  now = 0;
  events = new Events();
  pages = 0; // answered
  alive = 0; // workers
  actor = null; // the task that does something right now
  spans = []; // for the picture: side, number, kind, from, to
  count = 0; // events
  #begun = 0; // clients that have warmed up
  #most = 0; // workers alive
  #from = null; // where the measurement begins; then #times of a page
  #times = [];

  constructor(name, settings = {}, costs = derive(), seed = 1) {
    Object.assign(this, { name, kind: SERVERS[name], costs, own: costs.servers[name], seed });
    const { clients, cores, shared } = (this.settings = { ...SETTINGS, ...settings });
    this.other = new Core(this); // of the load generator and Redis
    this.cores = Array.from({ length: cores - shared }, () => new Core(this));
    if (shared) this.cores.push(this.other);
    this.#makeRedis();
    this.#makeTool();
    if (this.kind.loop) this.#makeLoop();
    else this.#makeWorkers();
    for (let number = 0; number < clients; number++) {
      this.tool.give({ side: "client", number, step: 0, worker: null, kept: false, connects: false, last: 0, pages: 0 });
    }
  }

  random() { // mulberry32
    this.seed = (this.seed + 0x6d2b79f5) | 0;
    let bits = Math.imul(this.seed ^ (this.seed >>> 15), 1 | this.seed);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  }

  /** From now on somebody does something else. What the first few did before is kept for the picture. */
  note(who, kind) {
    const { side, number, doing, since } = who;
    who.doing = kind;
    who.since = this.now;
    if (number >= SHOWN || !this.#from || this.spans.length >= MOST_SPANS || this.now === since) return;
    this.spans.push({ side, number, kind: doing, from: Math.max(0, since - this.#from.now), to: this.now - this.#from.now });
  }

  /** Starts a task on an idle core, which has to be woken, or else puts it into the shortest run queue. */
  place(task, wakes) {
    const load = (core) => core.queue.length + Number(core.task !== null);
    const best = task.cores.reduce((least, core) => (load(core) < load(least) ? core : least));
    if (best.task || best.queue.length) {
      this.note(task, "ready");
      return best.queue.push(task);
    }
    if (wakes) {
      task.left += task.wake + this.costs.waking; // a server's wake includes what it pays for waking Redis
      best.busy -= this.costs.waking; // until it is awake it does no work
    }
    if (wakes && best !== this.other && this.actor?.core === this.other) this.actor.debt += this.costs.rouse;
    best.start(task);
  }

  /** this.ask(query) leads a query { all: its clients, cost, anew, isLoop, reply() } to Redis and back. */
  #makeRedis() {
    const { settings: { delay, relay, kept }, costs: { redis } } = this;
    const command = redis.command[kept ? "kept" : "new"];
    const unread = []; // messages of an event loop: what it sends meanwhile is read together with them
    const give = (to, query) => {
      const last = query.isLoop && unread.find((each) => each.to === to && each.isBack === query.isBack);
      if (last) return last.all.push(...query.all);
      query.to = to;
      if (query.isLoop) unread.push(query);
      to.give(query);
    };
    const read = (query) => {
      if (query.isLoop) unread.splice(unread.indexOf(query), 1);
      return query.cost + command * (query.all.length - 1);
    };
    const arrive = (query) => (delay ? this.events.add(this.now + 1000 * delay, () => query.reply()) : query.reply());
    const replies = [];
    const store = new Loop(this, [this.other], redis.wake, {
      cost: (query) => read(query) + (query.anew ? redis.connect : 0),
      handle: (query) => replies.push(query),
      over: () => { // Redis writes its replies at the end of a round
        for (const query of replies.splice(0)) passes ? give(passes, Object.assign(query, { isBack: true })) : arrive(query);
      },
    });
    const passes = relay && new Loop(this, [this.other], redis.wake, { // there and back, as long as Redis takes
      cost: (query) => read(query) / 2,
      handle: (query) => (query.isBack ? arrive(query) : give(store, query)),
    });
    this.ask = (query) => give(passes || store, query);
  }

  /** this.tool takes an answer, and asks for the next page. Over a new connection that takes two of its
   * rounds: it connects for all whose answers came, and then sends the requests. So a server may have
   * accepted a client (opened) before the request is there (sent). */
  #makeTool() {
    const { settings: { clients, kept, apart }, costs: { tool } } = this;
    const cost = { new: at(tool.new.page, clients), kept: at(tool.kept.page, clients) };
    const handle = (client) => {
      if (client.step && !client.connects) { // an answer
        this.pages += 1;
        client.pages += 1;
        if (client.pages === (clients > 2000 ? 1 : 2)) this.#begun += 1;
        if (this.#from) this.#times.push(this.now - client.last);
        client.last = this.now;
      }
      if (client.connects) { // in the round before
        client.connects = false;
        client.sent = true;
        return this.send(client);
      }
      client.step = 1;
      client.sent = client.kept || apart;
      client.opened = false;
      client.connects = !client.sent;
      this.note(client, "queued");
      this.arrive(client);
      if (client.connects) this.tool.give(client);
    };
    const core = apart ? new Core(this) : this.other;
    this.tool = new Loop(this, [core], apart ? 0 : tool[kept ? "kept" : "new"].wake, { handle, cost: (client) => {
      if (apart) return 0.001; // next to nothing
      return client.kept ? cost.kept : cost.new * (client.connects ? 1 - CONNECTING : CONNECTING);
    } });
  }

  #answer(client, isKept) {
    client.kept = isKept;
    this.note(client, "answered");
    this.tool.give(client);
  }

  /** 06 and 07: one process has all clients. */
  #makeLoop() {
    const { own, costs: { round, redis }, settings: { clients, kept, work } } = this;
    const page = { new: at(own.new.page, clients), kept: at(own.kept.page, clients) };
    let asks = [];
    const loop = new Loop(this, this.cores, own[kept ? "kept" : "new"].wake, {
      round,
      cost: (client) => page[client.kept ? "kept" : "new"] * share(SHARES.loop, client)
        + (client.step > QUERIES ? 1000 * work : 0),
      handle: (client) => {
        if (!client.sent) return (client.opened = true);
        if (client.step === 1) this.note(client, "served");
        if (client.step > QUERIES) this.#answer(client, kept);
        else asks.push(client);
      },
      over: () => { // the commands of all clients, in one write
        if (!asks.length) return;
        this.ask({ all: asks, isLoop: true, isBack: false, cost: redis.ask, reply() {
          for (const client of this.all) {
            client.step += 1;
            loop.give(client);
          }
        } });
        asks = [];
      },
    }, 0);
    this.alive = this.#most = 1;
    this.arrive = (client) => loop.give(client);
    this.send = (client) => client.opened && loop.give(client);
  }

  /** 01 to 05: a worker has one client. */
  #makeWorkers() {
    const { kind, own, settings } = this;
    const page = at(own.new.page, settings.clients);
    const half = kind.maker ? Math.max(0, page - own.kept.page[0]) / 2 : 0; // to make a worker, and to end it
    const door = new Line(); // the accept queue
    const [idle, room] = [new Line(), new Line()]; // workers that wait for a client; threads, for a connection to Redis
    const free = []; // workers that have ended
    let connections = kind.pool?.(settings) ?? Infinity;
    let [made, coming] = [0, 0]; // workers that there were; and that the parent is making

    const wantPart = (worker, then) => {
      const { client } = worker;
      const cost = client.kept || kind.maker ? at(own.kept.page, this.alive) : page;
      worker.want(cost * share(SHARES.worker, client) + (client.step > QUERIES ? 1000 * settings.work : 0), then);
    };
    const serve = (worker, client) => {
      worker.client = client;
      client.worker = worker;
      worker.wake = own[client.kept ? "kept" : "new"].wake;
      this.note(client, "served");
      wantPart(worker, client.sent ? worker.asks : worker.opens);
    };
    const query = (worker) => {
      const { kept, step } = worker.client;
      this.note(worker, "redis");
      this.ask({ all: [worker], anew: this.name === "forking" && step === 1 && !kept, reply: worker.hears,
        cost: at(own[kept ? "kept" : "new"].ask, this.alive) });
    };
    const make = () => {
      const worker = free.pop() ?? new Task(this, this.cores, 0, made++);
      this.alive += 1;
      this.#most = Math.max(this.#most, this.alive);
      worker.opens = () => {
        worker.client.opened = true;
        if (worker.client.sent) wantPart(worker, worker.asks);
        else this.note(worker, "bytes");
      };
      worker.asks = () => {
        if (worker.client.step > 1 || connections-- > 0) return query(worker);
        this.note(worker, "room");
        room.push(worker);
      };
      worker.hears = () => {
        worker.client.step += 1;
        if (worker.client.step <= QUERIES) return wantPart(worker, worker.asks);
        connections += 1;
        if (room.length) query(room.shift());
        wantPart(worker, worker.answers);
      };
      worker.answers = () => {
        const { client } = worker;
        const keeps = settings.kept && (kind.maker || !door.length); // a team does not if others wait
        this.#answer(client, keeps);
        if (keeps) return this.note(worker, "bytes");
        client.worker = null;
        if (kind.maker) worker.want(half, worker.ends);
        else accept(worker);
      };
      worker.ends = () => {
        this.alive -= 1;
        this.note(worker, "gone");
        free.push(worker);
        callParent();
      };
      return worker;
    };
    const accept = (worker) => {
      if (door.length) return serve(worker, door.shift());
      this.note(worker, "arrival");
      idle.push(worker);
    };
    const parent = new Loop(this, this.cores, own.new.wake, { cost: () => half, handle: (client) => {
      coming -= 1;
      serve(make(), client);
    } });
    const callParent = () => {
      if (!door.length || this.alive + coming >= kind.most) return;
      coming += 1;
      parent.give(door.shift());
    };
    for (let i = kind.team?.(settings) ?? 0; i > 0; i--) accept(make());
    this.send = (client) => client.opened && wantPart(client.worker, client.worker.asks);
    this.arrive = (client) => {
      if (client.worker) return serve(client.worker, client);
      door.push(client);
      if (kind.maker) callParent();
      else if (idle.length) accept(idle.shift());
    };
  }

  /** Lets so many events happen. True when it is over: each client has had two pages to warm up (of an unfair
   * server, most have), and then three more on the average. Of a large crowd each has one, and one more. */
  advance(events = Infinity) {
    const { clients } = this.settings;
    const pages = clients > 2000 ? clients : Math.max(1500, this.settings.pages * clients);
    for (const until = this.count + events; this.count < until; this.count++) {
      if (this.#from && this.pages >= this.#from.pages + pages) return true;
      if (!this.#from && (this.#begun === clients || this.pages >= 5 * clients + 200)) {
        this.#from = { now: this.now, pages: this.pages, other: this.other.busy, cores: this.cores.map((core) => core.busy) };
      }
      const event = this.events.take();
      this.now = event.time;
      event.happen();
    }
    return false;
  }

  /** Pages a second; milliseconds of a page; how busy each core was, from 0 to 1; MiB. null: too early. */
  get result() {
    if (!this.#times.length) return null;
    const { now, pages, other, cores } = this.#from;
    const [micros, times] = [this.now - now, Float64Array.from(this.#times).sort()];
    const [rest, each, connection] = MEMORY[this.name];
    const connected = this.kind.loop ? this.settings.clients : Math.min(this.#most, this.settings.clients);
    return {
      rate: (1e6 * (this.pages - pages)) / micros,
      mean: times.reduce((sum, time) => sum + time, 0) / times.length / 1000,
      p50: times[times.length >> 1] / 1000, p99: times[Math.floor(times.length * 0.99)] / 1000,
      server: this.cores.map((core, i) => (core.busy - cores[i]) / micros),
      other: (this.other.busy - other) / micros,
      memory: rest + each * (this.kind.team?.(this.settings) ?? 0) + (connection * connected) / 1024, workers: this.#most,
    };
  }
}

export function simulate(name, settings = {}, costs = derive(), seed = 1) {
  const sim = new Sim(name, settings, costs, seed);
  sim.advance();
  return { ...sim.result, events: sim.count };
}
