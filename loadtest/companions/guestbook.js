// node: the guestbook's page with Node's own `http`, node-redis and Mustache, in which the project's
// template is written. One thread runs all of this. At each `await` it turns to another client.
//
//   node guestbook.js --port N --redis HOST:PORT       started where templates/ is
'use strict';

const fs = require('fs');
const http = require('http');
const { parseArgs } = require('util');
const Mustache = require('mustache');
const redis = require('redis');

const { values: options } = parseArgs({
  options: { port: { type: 'string' }, redis: { type: 'string' } },
});
const template = fs.readFileSync('templates/guestbook/index.html', 'utf8');
const store = redis.createClient({ url: `redis://${options.redis}` }); // one connection for all
const workUs = Number(process.env.WORK_US ?? 0); // of CPU time, as with --work of the seven

function compute() {
  const before = process.cpuUsage();
  let used;
  do used = process.cpuUsage(before); while (used.user + used.system < workUs);
}

async function guestbook() {
  await store.incr('guestbook:visitors');
  const visitors = await store.get('guestbook:visitors');
  const found = await store.lRange('guestbook:entries', -21, -1); // the last one is the newest
  const entries = found.slice(-20).reverse().map((entry) => {
    const [time, name, ...remarks] = entry.split('\n');
    return {
      signed: true, time, name, remarks: remarks.join('\n'), day: time.slice(0, 10), clock: time.slice(11, 16),
    };
  });
  compute();
  return Mustache.render(template, {
    server: 'node', page: 1, counted: true, visitors: Number(visitors).toLocaleString('en-US'),
    entries, nobody: entries.length === 0, older: found.length > 20, older_page: 2,
  });
}

const server = http.createServer(async (request, response) => {
  try {
    if (request.url === '/guestbook') {
      response.setHeader('Content-Type', 'text/html; charset=utf-8');
      response.end(await guestbook());
    } else {
      response.writeHead(404).end();
    }
  } catch (error) {
    console.error(error);
    response.writeHead(503).end();
  }
});

store.on('error', console.error);
store.connect().then(() => server.listen(Number(options.port), '127.0.0.1', 1024));
