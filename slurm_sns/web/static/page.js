// The script of the page: asks for the overview each 5 s, and shows it. Texts of users are set as text, never as markup.

const POLL_S = 5;
const PATIENCE_S = 25; // the server waits 15 s for the scheduler
const PRESSED_S = 2; // the longest press that is waited for
const OLD_S = 30; // so long after there should be a newer overview it is told that there is none
const ROWS = 200; // in the list at first, and with each click on the button
const MOST_ROWS = 1000; // of one answer
const BOXES = 200; // more nodes are cells of a grid
const LONGEST = 1000; // characters of a text that are shown
const BOX = {width: 120, height: 64};
const SVG = "http://www.w3.org/2000/svg";

const at = (id) => document.getElementById(id);

const page = {
  overview: null, // what is shown
  tag: "", // of the overview, for If-None-Match
  wanted: ROWS, // rows that the list is to have
  words: "", // of the filter
  lead_s: 0, // how far the server's clock is ahead of ours
  failing: null, // {since_s, error, remedy} while nothing is answered
  opener: null, // the job whose explanation is open
};

// -- texts

/** A text of anybody's as it may be shown: nothing that turns, hides or breaks what stands beside it, and not too long. */
function shown(text) {
  const safe = String(text).slice(0, LONGEST + 1).replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, "\uFFFD");
  return safe.length > LONGEST ? `${safe.slice(0, LONGEST)}…` : safe;
}

function make(name, text = "", classes = "", children = []) {
  const made = document.createElement(name);
  if (text !== "") made.textContent = shown(text);
  if (classes) made.className = classes;
  made.append(...children);
  return made;
}

function draw(name, attributes, classes = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (classes) made.setAttribute("class", classes);
  return made;
}

const say = (id, text) => { if (at(id).textContent !== text) at(id).textContent = text; };
// Made once: each of these takes longer to make than to use.
const NUMBER = new Intl.NumberFormat("en");
const [MINUTES, SECONDS] = [{}, {second: "2-digit"}].map((more) =>
  new Intl.DateTimeFormat("en", {hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...more}));
const WEEKDAY = new Intl.DateTimeFormat("en", {weekday: "short"});
const DATE = new Intl.DateTimeFormat("en", {day: "numeric", month: "short"});
const count = (number) => NUMBER.format(number);
const some = (number, one, more = `${one}s`) => `${count(number)} ${number === 1 ? one : more}`;
const now_s = () => Date.now() / 1000 + page.lead_s;

function duration(seconds) {
  if (seconds === 0) return "0 s";
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86400).toFixed(1)} d`;
}

function clock(moment_s, seconds = false) {
  const moment = new Date(moment_s * 1000), today = new Date(now_s() * 1000);
  const time = (seconds ? SECONDS : MINUTES).format(moment);
  if (moment.toDateString() === today.toDateString()) return time;
  const near = Math.abs(moment - today) < 6 * 86400e3;
  return `${(near ? WEEKDAY : DATE).format(moment)} ${time}`;
}

const memory = (mb) => (mb < 1024 ? `${mb} MiB` : `${+(mb / 1024).toFixed(mb < 10240 ? 1 : 0)} GiB`);
const gpus = (of) => Object.entries(of).map(([type, number]) => `${number} ${type ? `${type} ` : ""}GPU`).join(", ");
const listed = (names, most = 12) =>
  names.slice(0, most).join(", ") + (names.length > most ? ` and ${names.length - most} more` : "");

function size(row) {
  const of = row.demand;
  if (!of) return `${count(row.cpus)} CPUs`;
  return [`${of.nodes} × ${of.cores} cores`, memory(of.memory_mb), gpus(of.gpus)].filter(Boolean).join(", ");
}

const RUNS = ["running", "suspended", "completing"];

/** When it starts, as `sns queue` has it: a range, to the minute or to ten; or since when it runs. */
function start(row) {
  const starts = row.starts;
  if (RUNS.includes(row.state)) return row.start_s === null ? "" : `since ${clock(row.start_s)}`;
  if (!starts) return "";
  if (starts.low_s === null) {
    return starts.not_before_s !== null && starts.not_before_s > now_s() ? `after ${clock(starts.not_before_s)}` : "";
  }
  if (starts.high_s <= now_s()) return "late";
  const step_s = starts.high_s - starts.low_s <= 3600 ? 60 : 600;
  const low_s = Math.floor(starts.low_s / step_s) * step_s, high_s = Math.ceil(starts.high_s / step_s) * step_s;
  const [low, high] = [low_s <= now_s() ? "now" : clock(low_s), clock(high_s)];
  return low === high ? low : `${low} to ${high}`;
}

const why = (row) => (RUNS.includes(row.state) ? `on ${listed(row.nodes)}` : row.reason);

// -- the server

/** The answer as JSON, null if it has not changed; throws {error, since_s, remedy} if there is none. */
async function get(path, tag = "") {
  let answer, told;
  try {
    const headers = tag ? {"If-None-Match": tag} : {};
    answer = await fetch(path, {headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE_S * 1000)});
    if (answer.status !== 304) told = await answer.json();
  } catch {
    throw {error: "the server of this page does not answer", since_s: null, silent: true,
           remedy: "On the controller: systemctl status sns-web. The scheduler does not need it."};
  }
  const date = Date.parse(answer.headers.get("Date") ?? "");
  if (date) page.lead_s = Math.abs(date - Date.now()) > 2000 ? (date - Date.now()) / 1000 : 0;
  if (answer.status === 304) return null;
  if (!answer.ok) throw told;
  return {told, tag: answer.headers.get("ETag") ?? ""};
}

/** The rows that are to be shown; asked for again if others are wanted by the time they are there. */
async function rows_wanted() {
  const {words, wanted} = page;
  const found = {rows: [], matching: 0, total: 0};
  do {
    const limit = Math.min(MOST_ROWS, wanted - found.rows.length);
    const query = new URLSearchParams({offset: found.rows.length, limit, q: words});
    const {told} = await get(`api/jobs?${query}`);
    Object.assign(found, {matching: told.matching, total: told.total});
    found.rows.push(...told.rows);
    if (told.rows.length < limit) break;
  } while (found.rows.length < wanted);
  return words === page.words && wanted === page.wanted ? found : rows_wanted();
}

let under_way = null;
// While a button of the mouse is down nothing is replaced: what is pressed and what is released must be one thing.
let released = Promise.resolve();
addEventListener("pointerdown", () => {
  released = new Promise((resolve) => {
    const after_click = () => setTimeout(resolve);
    for (const each of ["pointerup", "pointercancel"]) addEventListener(each, after_click, {once: true});
    setTimeout(resolve, PRESSED_S * 1000); // a button may come up where nobody tells us: over a menu, outside the window
  });
});

/** Ask for the overview, and for more rows than it has if they are shown; one at a time. */
async function look() {
  under_way ??= look_once().finally(() => { under_way = null; });
  return under_way;
}

async function look_once() {
  try {
    const answer = await get("api/overview", page.tag);
    if (answer) {
      await released;
      const part = !page.words && page.wanted <= ROWS ? answer.told.jobs : await rows_wanted();
      page.overview = answer.told;
      page.tag = answer.tag;
      show_queue(part);
      show_state();
      await new Promise((resolve) => setTimeout(resolve)); // the queue is painted before the rest is made
      show_nodes(answer.told.nodes);
      show_day(answer.told.day);
    }
    page.failing = null;
  } catch (problem) {
    if (!("error" in problem)) throw problem;
    page.failing = {...problem, since_s: problem.since_s ?? page.failing?.since_s ?? now_s()};
    page.tag = "";
  }
  show_state();
}

// -- the top line

function show_state() {
  const {overview, failing} = page;
  document.body.classList.toggle("stale", failing !== null && overview !== null);
  if (overview) {
    const of = overview.counts;
    const more = ["placing", "suspended", "completing", "held"].filter((each) => of[each]);
    const told = [`${count(of.waiting)} waiting`, `${count(of.running)} running`];
    told.push(...more.map((each) => `${count(of[each])} ${each}`), `${count(of.never)} can never start`);
    say("counts", told.join(", "));
  }
  tick();
}

/** What changes with time: the age of what is shown, and what is wrong. */
function tick() {
  const {overview, failing} = page;
  if (overview) {
    const facts = [overview.mode, `cycle ${duration(overview.cycle_s)}`, overview.chosen];
    facts.push(`as of ${clock(overview.at_s, true)}`);
    facts.push(overview.viewer === null ? "seen by anybody" : `seen by ${shown(overview.viewer)}`);
    say("facts", facts.filter(Boolean).join(" · "));
  }
  let status = "";
  if (failing) {
    const past = overview ? ` What is shown is of ${clock(overview.at_s, true)}.` : "";
    status = `Since ${clock(failing.since_s, true)}: ${shown(failing.error)}.${past} ${failing.remedy}`;
  } else if (overview?.disabled) {
    status = "slurm_sns is disabled: Slurm alone places the jobs. An admin turns it on again: sns enable";
  } else if (overview?.trouble) {
    status = `Trouble: ${shown(overview.trouble)}`;
  } else if (overview && now_s() > Math.max(overview.at_s, overview.next_s ?? 0) + OLD_S) {
    status = `No cycle has ended since ${clock(overview.at_s, true)}. On the controller: sns status`;
  }
  say("status", overview || failing ? status : "Asking the scheduler …");
}

// -- lists whose entries stay as they are unless they change

/** Make the children of `parent` those of the values, by key; what has not changed stays, and keeps the focus. */
function reconcile(parent, values, key_of, made_of) {
  const old = parent.made ?? new Map();
  parent.made = new Map();
  values.forEach((value, place) => {
    const key = key_of(value), sign = JSON.stringify(value);
    const known = old.get(key);
    const element = known?.sign === sign ? known.element : made_of(value);
    if (known && known.element !== element) known.element.replaceWith(element);
    old.delete(key);
    parent.made.set(key, {sign, element});
    if (parent.children[place] !== element) parent.insertBefore(element, parent.children[place] ?? null);
  });
  for (const {element} of old.values()) element.remove();
  while (parent.children.length > values.length) parent.lastChild.remove();
}

// -- the queue

function row_of(row) {
  const place = row.position === null ? "" : count(row.position);
  const button = make("button", row.label, "job");
  button.type = "button";
  button.setAttribute("aria-haspopup", "dialog");
  const state = row.state === "waiting" ? [] : [make("span", row.state, "state")];
  const made = make("tr", "", "", [
    make("td", row.over_aged ? `${place} !` : place, "number"),
    make("td", "", "", [button, ...state, make("span", row.name, "under users")]),
    make("td", "", "who", [make("span", row.user, "users"), make("span", row.account, "under users")]),
    make("td", size(row), "number size"),
    make("td", start(row), "start"),
    make("td", "", "", [make("span", why(row), "why users")]),
  ]);
  made.dataset.job = row.label;
  return made;
}

function show_queue(part) {
  const body = at("rows");
  const focused = document.activeElement?.closest?.("#rows tr")?.dataset.job;
  reconcile(body, part.rows, (row) => row.label, row_of);
  const buttons = [...body.querySelectorAll("button")];
  const current = buttons.find((each) => each.closest("tr").dataset.job === focused);
  for (const each of buttons) each.tabIndex = -1;
  if (buttons.length) (current ?? buttons[0]).tabIndex = 0;
  if (current && document.activeElement !== current && !at("explanation").open) current.focus();
  const left = part.matching - part.rows.length;
  at("more").hidden = left <= 0;
  say("more", `and ${count(left)} more: show the next ${count(Math.min(ROWS, left))}`);
  say("matching", page.words ? `${count(part.matching)} of ${count(part.total)}` : "");
  at("empty").hidden = part.matching > 0;
  at("queue").querySelector("table").hidden = part.matching === 0;
  say("empty", page.words ? "No job has all of these words." : page.overview?.viewer === null
    ? "Jobs are shown to users whom a proxy has named, to each their own. On a terminal: sns queue"
    : "No jobs that you may see.");
}

async function show_rows() {
  try {
    show_queue(await rows_wanted());
  } catch (problem) {
    if (!("error" in problem)) throw problem;
    say("matching", shown(problem.error));
  }
}

// -- the nodes

function told_of_node(node) {
  if (node.unavailable) return `${node.name}: ${node.unavailable}`;
  const told = [`${node.name}: ${node.free.cores} of ${some(node.capacity.cores, "core")} free`];
  told.push(`${memory(node.free.memory_mb)} of ${memory(node.capacity.memory_mb)} free`);
  if (node.stranded.cores) told.push(`${some(node.stranded.cores, "core")} of use to no waiting job`);
  const lost = gpus(node.stranded.gpus);
  if (lost) told.push(`${lost} of use to no waiting job`);
  if (node.capacity.ways) told.push(`${node.free.ways} of ${node.capacity.ways} ways free`);
  const free = gpus(node.free.gpus);
  if (Object.keys(node.capacity.gpus).length) told.push(`${free || "no GPU"} free of ${gpus(node.capacity.gpus)}`);
  told.push(some(node.jobs.length, "job") + (node.jobs.some((each) => each.label) ? `: ${jobs_of(node)}` : ""));
  if (node.kept_for.length) told.push(`kept for ${kept(node)}`);
  return told.join("; ");
}

const jobs_of = (node) => listed(node.jobs.map((each) => each.label || "one of others"));
const kept = (node) => listed(node.kept_for.map((each) => each || "a waiting job"), 3);
const kind_of = (share) => (share.label ? `own hue${hash(share.label) % 4}` : share.managed ? "other" : "unmanaged");
const hash = (text) => [...text].reduce((sum, each) => (sum * 31 + each.codePointAt(0)) % 65521, 7);

/** The jobs of a node as steps: each as wide as its cores and as high as its memory, from the lower left corner. */
function steps(node, {width, height}) {
  const wide = width / Math.max(1, node.capacity.cores), high = height / Math.max(1, node.capacity.memory_mb);
  let x = 0, y = height;
  return node.jobs.map((share) => {
    const [w, h] = [share.holds.cores * wide, Math.max(1, share.holds.memory_mb * high)];
    const made = draw("rect", {x, y: Math.max(0, y - h), width: Math.max(1, w), height: h}, `share ${kind_of(share)}`);
    if (share.label) made.dataset.job = share.label;
    const title = draw("title", {});
    title.textContent = `${share.label ? `job ${shown(share.label)}` : share.managed ? "a job" : "a job of Slurm's own"}: ` +
      `${some(share.holds.cores, "core")}, ${memory(share.holds.memory_mb)}`;
    made.append(title);
    [x, y] = [x + w, y - h];
    return made;
  });
}

/** The stranded cores: a strip at the right. */
function stranded(node, {width, height}) {
  const wide = (node.stranded.cores / Math.max(1, node.capacity.cores)) * width;
  return wide ? [draw("rect", {x: width - wide, y: 0, width: wide, height, fill: "url(#hatch)"}, "stranded")] : [];
}

/** A strip of the cache's ways below the box, and the GPUs below that. */
function below(node, {width, height}) {
  const made = [];
  const cell = width / Math.max(1, node.capacity.ways);
  let way = 0;
  for (const share of node.jobs.filter((each) => node.capacity.ways && each.holds.ways)) {
    const place = {x: way * cell, y: height + 3, width: share.holds.ways * cell, height: 5};
    made.push(draw("rect", place, `share ${kind_of(share)}`));
    way += share.holds.ways;
  }
  if (node.capacity.ways) made.unshift(draw("rect", {x: 0, y: height + 3, width, height: 5}, "ways"));
  const number = (of) => Object.values(of).reduce((sum, each) => sum + each, 0);
  const all = number(node.capacity.gpus), taken = all - number(node.free.gpus), lost = number(node.stranded.gpus);
  for (let each = 0; each < Math.min(all, 16); each += 1) {
    const where = {x: each * 7.5, y: height + 11, width: 5.5, height: 5.5};
    made.push(draw("rect", where, each < taken ? "gpu taken" : "gpu"));
    if (each >= taken && each < taken + lost) made.push(draw("rect", {...where, fill: "url(#hatch)"}, "stranded"));
  }
  return made;
}

function box_of(node) {
  const height = BOX.height + (node.capacity.ways ? 9 : 0) + (Object.keys(node.capacity.gpus).length ? 18 : 0);
  const picture = draw("svg", {viewBox: `-1.5 -1.5 ${BOX.width + 3} ${height + 3}`, role: "img"}, "box");
  picture.setAttribute("aria-label", shown(told_of_node(node)));
  picture.append(draw("rect", {x: 0, y: 0, ...BOX}, node.unavailable ? "room unavailable" : "room"));
  picture.append(...steps(node, BOX), ...stranded(node, BOX), ...below(node, BOX));
  picture.append(draw("rect", {x: 0, y: 0, ...BOX}, node.kept_for.length ? "edge keeps" : "edge"));
  const what = node.unavailable || `${node.free.cores} of ${node.capacity.cores} cores free`;
  const told = make("figcaption", "", "", [make("b", node.name), make("span", what)]);
  if (node.kept_for.length) told.append(make("span", `kept for ${kept(node)}`, "keeps"));
  return make("figure", "", "node", [picture, told]);
}

/** So many nodes that boxes would be too small: a cell each, the darker the fuller. */
function grid_of(nodes) {
  const wide = Math.ceil(Math.sqrt(nodes.length * 2));
  const away = nodes.filter((each) => each.unavailable).length, kept_ones = nodes.filter((each) => each.kept_for.length);
  const picture = draw("svg", {viewBox: `0 0 ${wide * 10} ${Math.ceil(nodes.length / wide) * 10}`, role: "img"}, "grid");
  picture.setAttribute("aria-label", `${some(nodes.length, "node")}, a cell each: ${count(away)} cannot be used, ` +
    `${count(kept_ones.length)} kept for waiting jobs`);
  nodes.forEach((node, place) => {
    const where = {x: (place % wide) * 10 + 1, y: Math.floor(place / wide) * 10 + 1, width: 8, height: 8};
    const taken = 1 - node.free.cores / Math.max(1, node.capacity.cores);
    const cell = draw("rect", where, node.unavailable ? "cell unavailable" : `cell full${Math.ceil(taken * 4)}`);
    const title = draw("title", {});
    title.textContent = shown(told_of_node(node));
    cell.append(title);
    picture.append(cell);
    if (node.stranded.cores) picture.append(draw("rect", {...where, fill: "url(#hatch)"}, "stranded"));
    if (node.kept_for.length) picture.append(draw("rect", where, "edge keeps"));
  });
  return picture;
}

function show_nodes(nodes) {
  const where = at("nodes");
  at("legend").hidden = nodes.length === 0;
  const parts = nodes.length > BOXES ? [nodes] : nodes;
  where.classList.toggle("cells", nodes.length > BOXES);
  reconcile(where, parts, (each) => each.name ?? "grid", nodes.length > BOXES ? grid_of : box_of);
}

// -- the last day

const CURVES = [
  {id: "waiting", name: "Waiting cores", fields: ["waiting_cores"], text: count},
  {id: "stranded", name: "Stranded cores", fields: ["stranded_cores"], text: count},
  {id: "wait", name: "Waits of started jobs", fields: ["wait_p50_s", "wait_p90_s"], text: duration},
];
const WAIT_STEPS_S = [1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 18000, 43200, 86400, 172800, 432000, 864000];

function show_day(day) {
  for (const each of CURVES) {
    each.day = day;
    say(`${each.id}-told`, told_of_curve(each, day));
    if (window.uPlot) curve(each);
  }
}

function told_of_curve({name, fields, text}, day) {
  const known = fields.map((field) => day.filter((each) => each[field] !== null));
  if (!known[0].length) return `${name}: nothing recorded yet`;
  if (fields.length > 1) {
    const [median, ninth] = known.map((of, place) => text(of.at(-1)[fields[place]]));
    return `${name}: last median ${median}, 90th percentile ${ninth}`;
  }
  const peak = known[0].reduce((most, each) => (each[fields[0]] > most[fields[0]] ? each : most));
  return `${name}: ${text(known[0].at(-1)[fields[0]])}, most ${text(peak[fields[0]])} at ${clock(peak.at_s)}`;
}

function curve(of) {
  const where = at(`${of.id}-curve`);
  const sign = JSON.stringify([of.day.length, of.day.at(-1), where.clientWidth, where.clientHeight, dark.matches]);
  if (of.sign === sign || !where.clientWidth) return;
  of.sign = sign;
  of.plot?.destroy();
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = {stroke: color("--quiet"), font: "11px system-ui", grid: {stroke: color("--line")}, ticks: {show: false}};
  const series = of.fields.map((_, place) => ({stroke: color(place ? "--second" : "--accent"), width: 1.5,
    dash: place ? [4, 3] : undefined, points: {show: false}, spanGaps: true}));
  of.plot = new window.uPlot({
    width: where.clientWidth, height: where.clientHeight, legend: {show: false}, cursor: {show: false},
    series: [{}, ...series],
    scales: {y: {range: (_, low, high) => [0, Math.max(1, high * 1.1)]}},
    axes: [{...axis, size: 22, values: (_, moments) => moments.map((each) => clock(each))},
           {...axis, size: 52, values: (_, found) => found.map(of.text), incrs: of.id === "wait" ? WAIT_STEPS_S : undefined}],
  }, [of.day.map((each) => each.at_s), ...of.fields.map((field) => of.day.map((each) => each[field]))], where);
}

// -- the explanation of a job

async function explain(label, opener) {
  const dialog = at("explanation"), number = /^(\d+)(?:_\[?(\d+))?/.exec(label);
  if (!number) return;
  page.opener = opener;
  at("explained").textContent = `Job ${shown(label)}`;
  at("told").replaceChildren(make("p", "Asking the scheduler …"));
  if (!dialog.open) dialog.showModal();
  mark(label);
  try {
    const name = number[2] === undefined ? number[1] : `${number[1]}_${number[2]}`;
    const {told} = await get(`api/explain?job=${name}`);
    if (page.opener === opener) at("told").replaceChildren(...explained(told));
  } catch (problem) {
    if (!("error" in problem)) throw problem;
    if (page.opener === opener) at("told").replaceChildren(make("p", `${problem.error}. ${problem.remedy}`));
  }
}

function explained(answer) {
  const row = answer.job, made = [];
  const add = (text, classes = "") => { if (text) made.push(make("p", text, classes)); };
  if (answer.pass_through !== null) add(`Slurm's own: ${answer.pass_through}`);
  if (row) {
    add(row.name, "users quiet");
    add(row.state + (row.nodes.length ? ` on ${listed(row.nodes)}` : ""), "strong");
    add(row.reason, "users");
    add(`${row.user}, account ${row.account}, partition ${row.partition}, ${size(row)}`, "users quiet");
    if (row.starts && start(row)) {
      const limits = row.starts.limits_s === null ? "" : ` (by limits ${clock(row.starts.limits_s)})`;
      add(`Starts ${start(row)}${limits}${row.starts.waits_for ? `, when ${row.starts.waits_for} come free` : ""}`);
    }
  } else add("no longer in Slurm");
  add(answer.array);
  add(answer.learning);
  if (answer.would_start.length) {
    made.push(make("h3", "It would start now with one of these changes"));
    made.push(list(answer.would_start.map((each) => `${each.options}  on ${listed(each.nodes)}`)));
    add("As of the last cycle; not promised.", "quiet");
  }
  for (const told of [answer.considered, answer.cycle]) if (told) made.push(...considered(told));
  if (answer.decisions.length) {
    made.push(make("h3", "What was decided"));
    made.push(list(answer.decisions.map((each) => `${clock(each.at_s, true)}  ` +
      `${each.action === "start" ? `placed on ${listed(each.nodes)}, ` : ""}${each.reason}` +
      `${each.times > 1 ? ` (${each.times} times)` : ""}`)));
  }
  const away = Object.entries(answer.unavailable).sort();
  if (answer.cycle && away.length) {
    made.push(make("h3", "Nodes that cannot be used"));
    made.push(list(away.slice(0, 50).map(([name, reason]) => `${name}: ${reason}`)));
  }
  return made;
}

const list = (texts) => make("ul", "", "users", texts.map((each) => make("li", each)));

function considered(told) {
  const made = [make("h3", `What the policy considered, by ${told.heading}`), make("p", told.summary.join(" "), "users")];
  const rows = told.considered, names = [...new Set(rows.flatMap((row) => Object.keys(row.figures)))];
  if (rows.length) {
    const head = [told.heading, ...names, "outcome", "why"].map((each) => {
      const cell = make("th", each);
      cell.scope = "col";
      return cell;
    });
    const figure = (value) => (typeof value === "number" ? String(+value.toPrecision(4)) : value ?? "");
    const body = rows.map((row) => make("tr", "", "", [make("td", row.name),
      ...names.map((name) => make("td", figure(row.figures[name]), "number")), make("td", row.outcome),
      make("td", row.reason, "users")]));
    const scrolled = make("div", "", "scrolled", [make("table", "", "", [
      make("thead", "", "", [make("tr", "", "", head)]), make("tbody", "", "", body)])]);
    Object.assign(scrolled, {tabIndex: 0, role: "region", ariaLabel: `considered: ${shown(told.heading)}`});
    made.push(scrolled);
  }
  return [...made, ...told.details.map((each) => make("p", each, "users"))];
}

/** Mark the job in the nodes. */
function mark(label) {
  for (const each of document.querySelectorAll("#nodes [data-job]")) each.classList.toggle("marked", each.dataset.job === label);
}

// -- what a person does

at("queue").addEventListener("click", (event) => {
  const row = event.target.closest("#rows tr");
  if (row && !getSelection().toString()) explain(row.dataset.job, row.querySelector("button"));
});

at("nodes").addEventListener("click", (event) => {
  const share = event.target.closest("[data-job]");
  if (share) explain(share.dataset.job, at("nodes"));
});

at("rows").addEventListener("keydown", (event) => {
  const buttons = [...at("rows").querySelectorAll("button")], place = buttons.indexOf(event.target);
  const to = {ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: buttons.length - 1}[event.key];
  if (place < 0 || to === undefined || !buttons[to]) return;
  event.preventDefault();
  event.target.tabIndex = -1;
  buttons[to].tabIndex = 0;
  buttons[to].focus();
});

at("more").addEventListener("click", async () => {
  const before = at("rows").children.length;
  page.wanted = before + ROWS;
  await show_rows();
  at("rows").children[before]?.querySelector("button").focus();
});

let typing = 0;
at("search").addEventListener("submit", (event) => event.preventDefault());
at("filter").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    page.words = at("filter").value.trim();
    page.wanted = ROWS;
    show_rows();
  }, 150);
});

at("close").addEventListener("click", () => at("explanation").close());
at("explanation").addEventListener("click", (event) => { if (event.target === at("explanation")) at("explanation").close(); });
at("explanation").addEventListener("close", () => {
  mark("");
  // The browser has given the focus back already, unless the row was replaced meanwhile. By now it may have gone on.
  const label = page.opener?.closest("tr")?.dataset.job;
  const again = label && [...at("rows").children].find((each) => each.dataset.job === label)?.querySelector("button");
  if (document.activeElement === document.body) (again ?? page.opener)?.focus();
  page.opener = null;
});

const dark = matchMedia("(prefers-color-scheme: dark)");
const curves = () => { if (window.uPlot) for (const each of CURVES) if (each.day) curve(each); };
dark.addEventListener("change", curves);
addEventListener("load", curves);
new ResizeObserver(curves).observe(at("day"));
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
setInterval(() => { if (!document.hidden) look(); }, POLL_S * 1000);
setInterval(() => { if (!document.hidden) tick(); }, 1000);
look();
