/* The list of records, which stand in the page as compressed JSON: searched, filtered, sorted, opened. */
(() => {
  const { detailOf, make, number, scoreText, textOf, visible } = records;
  const PAGE = 50;
  const KEPT_CHUNKS = 32;
  const PAUSE = 180;
  const narrow = matchMedia("screen and (max-width: 44rem)");
  const byId = (id) => document.getElementById(id);
  const form = byId("filters");
  const table = byId("list");
  const body = table.tBodies[0];

  /** The value of a block of the page. */
  async function unpack(id) {
    const binary = atob(byId(id).textContent);
    const bytes = new Uint8Array(binary.length);
    for (let place = 0; place < binary.length; place += 1) bytes[place] = binary.charCodeAt(place);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).json();
  }

  let index;
  let order = [];
  let page = 0;
  let sorting = { by: "index", ascending: true };
  let folded = null;
  let turn = 0;
  const opened = new Set();
  const chunks = new Map();

  /** The records of a chunk; the latest ones are kept. */
  function chunkAt(place) {
    let chunk = chunks.get(place);
    chunks.delete(place);
    chunk ||= unpack(`chunk-${place}`);
    chunks.set(place, chunk);
    if (chunks.size > KEPT_CHUNKS) chunks.delete(chunks.keys().next().value);
    return chunk;
  }

  /** Which chunk a record is in. */
  function chunkOf(position) {
    let low = 0;
    let high = index.chunks.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (index.chunks[middle] <= position) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  async function recordAt(position) {
    const place = chunkOf(position);
    return (await chunkAt(place))[position - index.chunks[place]];
  }

  /** How many columns of the list are to be seen. */
  const columns = () => (narrow.matches ? 3 : 5);

  const chosen = () => byId("evaluator").value;
  const judged = () => index.evaluators[chosen()];
  const fold = (text) => text.normalize("NFKC").toLowerCase();

  const limit = (id) => (byId(id).value === "" ? null : Number(byId(id).value));
  const within = (value, least, most) =>
    (least === null && most === null) || (value !== null && (least === null || value >= least) && (most === null || value <= most));

  /** Positions that meet everything but the search. */
  function filtered() {
    const rows = judged();
    const status = byId("status").value;
    const scores = [limit("least-score"), limit("most-score")];
    const counts = [limit("least-contexts"), limit("most-contexts")];
    const fields = [...form.querySelectorAll("select.by")].map((select, place) => [select.value, index.fields[place].places]);
    const found = [];
    for (let position = 0; position < index.index.length; position += 1) {
      const error = rows.error[position];
      if (error === null) continue;
      if (status === "evaluated" && error !== "") continue;
      if (status === "error" && error === "") continue;
      if (status.startsWith("error:") && status !== `error:${error}`) continue;
      if (!within(rows.score[position], ...scores) || !within(index.contexts[position], ...counts)) continue;
      if (fields.some(([value, places]) => value !== "" && places[position] !== Number(value))) continue;
      found.push(position);
    }
    return found;
  }

  function sorted(positions) {
    const column = sorting.by === "score" ? judged().score : index[sorting.by];
    const sign = sorting.ascending ? 1 : -1;
    return positions.sort((one, other) => {
      const [a, b] = [column[one], column[other]];
      if (a === b) return one - other;
      if (a === null || b === null) return a === null ? 1 : -1;
      return sign * (a - b);
    });
  }

  /** Those of the positions that have all words, told of as they are found; null where a newer search took over. */
  async function searched(positions, words, mine) {
    folded ||= index.question.map((question, position) => fold(`${index.id[position]}\n${question}`));
    const has = (text) => words.every((word) => text.includes(word));
    const found = positions.filter((position) => has(folded[position]));
    const known = new Set(found);
    const rest = new Map();
    for (const position of positions) {
      if (known.has(position)) continue;
      const place = chunkOf(position);
      if (!rest.has(place)) rest.set(place, []);
      rest.get(place).push(position);
    }
    let done = 0;
    for (const [place, inside] of rest) {
      const chunk = await chunkAt(place);
      if (mine !== turn) return null;
      for (const position of inside) {
        if (has(fold(textOf(chunk[position - index.chunks[place]])))) found.push(position);
      }
      done += 1;
      byId("progress").textContent = `looking into contexts, ${Math.floor((100 * done) / rest.size)} %, ${number.format(found.length)} found`;
    }
    byId("progress").textContent = "";
    return found;
  }

  async function refresh() {
    turn += 1;
    const mine = turn;
    byId("progress").textContent = "";
    table.setAttribute("aria-busy", "true");
    const words = fold(byId("query").value).split(/\s+/).filter(Boolean);
    let positions = filtered();
    if (words.length) positions = await searched(positions, words, mine);
    if (positions === null || mine !== turn) return;
    order = sorted(positions);
    page = 0;
    show();
    table.removeAttribute("aria-busy");
  }

  const pageCount = () => Math.max(1, Math.ceil(order.length / PAGE));

  function show() {
    page = Math.min(Math.max(page, 0), pageCount() - 1);
    const shown = order.slice(page * PAGE, (page + 1) * PAGE);
    body.replaceChildren(...shown.map(rowOf));
    if (!shown.length) {
      body.append(make("tr", null, make("td", { class: "empty", colspan: columns() }, "No record meets all of this.")));
    }
    for (const position of shown) if (opened.has(position)) expand(position);
    const total = index.index.length;
    byId("hits").textContent =
      `${number.format(order.length)} of ${number.format(total)} records` +
      (pageCount() > 1 ? `, page ${number.format(page + 1)} of ${number.format(pageCount())}` : "");
    byId("pages").hidden = pageCount() === 1;
    byId("page").value = page + 1;
    byId("page").max = pageCount();
    byId("of").textContent = `of ${number.format(pageCount())}`;
    for (const id of ["first", "previous"]) byId(id).disabled = page === 0;
    for (const id of ["next", "last"]) byId(id).disabled = page === pageCount() - 1;
    byId("open-all").disabled = !shown.length;
  }

  function statusChip(error) {
    return error === "" ? make("span", { class: "chip plain" }, "evaluated") : make("span", { class: "chip bad" }, error);
  }

  function rowOf(position) {
    const rows = judged();
    const name = index.index[position];
    const question = index.question[position];
    const button = make(
      "button",
      { type: "button", class: "question", dir: "auto", "aria-expanded": "false", id: `open-${name}` },
      visible(question) || "(no question)",
    );
    button.addEventListener("click", () => (opened.has(position) ? collapse(position) : expand(position)));
    const count = index.contexts[position];
    return make(
      "tr",
      { class: "record", id: `row-${name}` },
      make("td", null, make("a", { href: `#record-${name}`, "aria-label": `Link to record ${name}` }, String(name))),
      make("td", null, button),
      make("td", null, scoreText(rows.score[position])),
      make("td", null, statusChip(rows.error[position])),
      make("td", null, count === null ? "–" : String(count)),
    );
  }

  function collapse(position) {
    opened.delete(position);
    const name = index.index[position];
    byId(`record-${name}`)?.remove();
    const button = byId(`open-${name}`);
    button.setAttribute("aria-expanded", "false");
    button.removeAttribute("aria-controls");
    byId(`row-${name}`).classList.remove("open");
  }

  async function expand(position) {
    opened.add(position);
    const name = index.index[position];
    const record = await recordAt(position);
    const row = byId(`row-${name}`);
    if (!row || !opened.has(position) || byId(`record-${name}`)) return;
    const detail = make("tr", { class: "detail", id: `record-${name}` }, make("td", { colspan: columns() }, ...detailOf(record, chosen())));
    row.after(detail);
    row.classList.add("open");
    const button = byId(`open-${name}`);
    button.setAttribute("aria-expanded", "true");
    button.setAttribute("aria-controls", `record-${name}`);
  }

  async function follow() {
    const name = /^#record-(\d+)$/.exec(location.hash)?.[1];
    if (name === undefined) return;
    const position = index.index.indexOf(Number(name));
    if (position < 0) return;
    if (!order.includes(position)) {
      form.reset();
      await refresh();
    }
    if (!order.includes(position)) return;
    page = Math.floor(order.indexOf(position) / PAGE);
    opened.add(position);
    show();
    await expand(position);
    const button = byId(`open-${name}`);
    button.scrollIntoView({ block: "start" });
    button.focus();
  }

  function turnTo(wanted) {
    page = wanted;
    show();
  }

  function listen() {
    let waiting;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(refresh, PAUSE);
    });
    form.addEventListener("reset", () => setTimeout(refresh));
    byId("first").addEventListener("click", () => turnTo(0));
    byId("previous").addEventListener("click", () => turnTo(page - 1));
    byId("next").addEventListener("click", () => turnTo(page + 1));
    byId("last").addEventListener("click", () => turnTo(pageCount() - 1));
    byId("page").addEventListener("change", (event) => turnTo((Math.floor(Number(event.target.value)) || 1) - 1));
    byId("open-all").addEventListener("click", () => {
      for (const position of order.slice(page * PAGE, (page + 1) * PAGE)) expand(position);
    });
    for (const button of table.tHead.querySelectorAll("button")) {
      button.addEventListener("click", () => {
        const by = button.dataset.sort;
        sorting = { by, ascending: sorting.by === by ? !sorting.ascending : by !== "contexts" };
        for (const other of table.tHead.querySelectorAll("th[aria-sort]")) other.setAttribute("aria-sort", "none");
        button.parentElement.setAttribute("aria-sort", sorting.ascending ? "ascending" : "descending");
        order = sorted(order);
        turnTo(0);
      });
    }
    narrow.addEventListener("change", show);
    addEventListener("hashchange", follow);
  }

  async function start() {
    byId("counts").hidden = false;
    if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old to unpack the records");
    index = await unpack("index");
    for (const element of [form, table]) element.hidden = false;
    listen();
    await refresh();
    await follow();
  }

  start().catch((error) => {
    byId("trouble").hidden = false;
    byId("trouble").textContent = `The records cannot be shown: ${error.message}.`;
  });
})();
