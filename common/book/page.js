// The search of a page. Nothing here is fetched from another host; the index
// is a script, so that the search works from a disk as well.
const search = document.getElementById("search");
const found = document.getElementById("found");
const MOST = 20; // hits that are shown

function excerpt(text, word) {
  const place = Math.max(0, text.toLowerCase().indexOf(word));
  const from = place < 60 ? 0 : text.indexOf(" ", place - 60) + 1; // whole words
  const to = text.lastIndexOf(" ", from + 180);
  return (from ? "… " : "") + (text.length > from + 180 ? text.slice(from, to) + " …" : text.slice(from));
}

function show() {
  const words = search.value.toLowerCase().split(/\s+/).filter((word) => word);
  const holds = (text) => words.every((word) => text.toLowerCase().includes(word));
  const hits = words.length && typeof sections !== "undefined"
    ? sections.filter(([, heading, text]) => holds(heading + " " + text)) : [];
  hits.sort((one, other) => holds(other[1]) - holds(one[1])); // in a heading first
  const items = hits.slice(0, MOST).map(([where, heading, text]) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = search.dataset.root + where;
    link.textContent = heading;
    item.append(link, " ", excerpt(text, words[0]));
    return item;
  });
  const list = document.createElement("ol");
  list.append(...items);
  const count = document.createElement("p");
  count.textContent = hits.length > MOST ? `${hits.length} sections; the first ${MOST}:`
    : `${hits.length} section${hits.length === 1 ? "" : "s"}`;
  found.replaceChildren(...(words.length ? [count, list] : []));
}

search.addEventListener("focus", () => {
  const script = document.createElement("script");
  script.src = search.dataset.root + "search.js"; // sets sections
  script.addEventListener("load", show);
  document.head.append(script);
}, { once: true });
search.addEventListener("input", show);
search.form.addEventListener("submit", (event) => event.preventDefault());

addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("main details")) each.open = true;
});
