// The page of package inspect. What comes from the server is shown by textContent alone, so it is never taken for HTML.

const at = id => document.getElementById(id);
const token = new URLSearchParams(location.search).get("token") ?? "";
const url = (path, parameters = {}) => path + "?" + new URLSearchParams({token, ...parameters});

const kept = 60; // reports that a lane shows
let before = null; // the report before this one
const lanes = new Map(); // by the index of the scheduler

function element(name, text = "", kind = "") {
	const e = document.createElement(name);
	e.textContent = text;
	if (kind) e.className = kind;
	return e;
}

// span writes nanoseconds as people read them.
function span(ns) {
	if (ns === 0) return "–";
	for (const [unit, size] of [["h", 3600e9], ["m", 60e9], ["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
		if (ns >= size) return (ns / size).toPrecision(ns / size >= 100 ? 3 : 2) + " " + unit;
	}
	return ns + " ns";
}

const number = n => n.toLocaleString("en");

// bound returns below what the part q of all durations in buckets was, in ns; 0 if there are none.
function bound(buckets, q) {
	let left = q * buckets.reduce((a, b) => a + b, 0);
	for (const [i, n] of buckets.entries()) {
		left -= n;
		if (n > 0 && left <= 0) return 2 ** (10 + i);
	}
	return 0;
}

// table fills a table. Each column has a name, how to get its text from a row, and "n" if it is a number.
function table(id, rows, columns) {
	const head = element("tr");
	for (const [name, , kind] of columns) head.append(element("th", name, kind));
	const body = rows.map(row => {
		const line = element("tr");
		for (const [, text, kind] of columns) line.append(element("td", text(row), kind));
		return line;
	});
	at(id).replaceChildren(...(rows.length ? [head, ...body] : []));
}

function lane(index) {
	const e = element("div", "", "lane");
	const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
	svg.setAttribute("viewBox", `0 0 ${kept - 1} 100`);
	svg.setAttribute("preserveAspectRatio", "none");
	svg.setAttribute("role", "img");
	const curve = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
	svg.append(curve);
	const figures = element("p"), state = element("p");
	const texts = element("div");
	texts.append(figures, state);
	e.append(element("b", index), svg, texts);
	at("lanes").append(e);
	return {e, svg, curve, figures, state, loads: []};
}

function showScheduler(s, was) {
	if (!lanes.has(s.index)) lanes.set(s.index, lane(s.index));
	const l = lanes.get(s.index);
	const passed = was ? s.uptime - was.uptime : 0;
	if (passed > 0) {
		const rest = Object.entries(s.idle).map(([how, spent]) => [how, Math.max(0, spent - was.idle[how]) / passed]);
		const load = Math.max(0, 1 - rest.reduce((all, [, part]) => all + part, 0));
		l.loads.push(load);
		l.loads.splice(0, l.loads.length - kept);
		const since = name => (s.counts[name] ?? 0) - (was.counts[name] ?? 0);
		const wakes = s.wakes.buckets.map((n, i) => n - was.wakes.buckets[i]);
		l.figures.textContent = `load ${Math.round(100 * load)} % · ready ${number(s.counts.ready)} · tasks ${number(s.counts.tasks)}` +
			rest.filter(([, part]) => part >= .005).map(([how, part]) => ` · ${how} ${Math.round(100 * part)} %`).join("") +
			` · ${number(Math.round(since("turns_total") / (passed / 1e9)))} turns/s · wake p99 ${span(bound(wakes, .99))}`;
		l.svg.setAttribute("aria-label", `load of scheduler ${s.index}: ${Math.round(100 * load)} %`);
		l.curve.setAttribute("points", l.loads.map((v, i) => `${kept - l.loads.length + i},${98 - 96 * v}`).join(" "));
	}
	l.state.textContent = s.state + (s.late ? `; no answer for ${span(s.late)}` : "") +
		(s.ends ? `; ending for ${span(s.ends.since)}: ${s.ends.order}; terms: ${s.ends.terms}` : "") +
		(s.ends?.left ? `; ${span(s.ends.left)} are left` : "");
	l.figures.hidden = Boolean(s.late); // they are of a time when it was not stuck
	l.e.toggleAttribute("data-stuck", Boolean(s.late));
}

// sum adds up what the schedulers say of services or kinds of the same name. Fields that one answer has for all are not added.
function sum(schedulers, of, once = []) {
	const all = new Map();
	for (const s of schedulers.toSorted((a, b) => (a.late ?? 0) - (b.late ?? 0))) { // the latest answer first
		for (const row of s[of] ?? []) {
			const to = all.get(row.name);
			if (!to) {
				all.set(row.name, structuredClone(row));
				continue;
			}
			for (const [key, value] of Object.entries(row)) {
				if (typeof value === "number" && !once.includes(key)) to[key] += value;
			}
			for (const durations of ["took", "wakes"]) {
				row[durations]?.buckets.forEach((n, i) => to[durations].buckets[i] += n);
				if (row[durations]) to[durations].max = Math.max(to[durations].max, row[durations].max);
			}
		}
	}
	return [...all.values()].sort((a, b) => a.name < b.name ? -1 : 1);
}

function show(report) {
	const findings = report.findings ?? [];
	at("findings").replaceChildren(...findings.map(f => element("li", f)));
	at("nofindings").hidden = findings.length > 0;
	for (const s of report.schedulers) showScheduler(s, before?.schedulers[s.index]);
	showStalls(report.stalls?.last ?? []);

	table("services", sum(report.schedulers, "services", ["open", "max"]), [
		["service", v => v.name], ["open", v => number(v.open), "n"], ["at most", v => v.max ? number(v.max) : "–", "n"],
		["accepted", v => number(v.accepted), "n"], ["refused", v => number(v.refused), "n"],
		["too many", v => number(v.too_many), "n"], ["too fast", v => number(v.too_fast), "n"],
		["reclaimed", v => number(v.reclaimed), "n"], ["failed", v => number(v.failed), "n"], ["gone", v => number(v.gone), "n"],
		["pauses", v => number(v.full), "n"], ["shortages", v => number(v.shortages), "n"],
	]);
	table("stages", report.schedulers.flatMap(s => s.stages ?? []), [
		["stage engine", v => v.worker], ["running", v => number(v.running?.length ?? 0), "n"], ["workers", v => number(v.workers), "n"],
		["claimed", v => number(v.claimed), "n"], ["finished", v => number(v.finished), "n"], ["failed", v => number(v.failed), "n"],
		["suspended", v => number(v.suspended), "n"], ["leases lost", v => number(v.lost), "n"],
		["works on", v => v.kinds.join(", "), "long"], ["waits for", v => v.waits?.join(", ") ?? "", "long"],
	]);
	const kinds = sum(report.schedulers, "kinds");
	const old = new Map(before ? sum(before.schedulers, "kinds").map(k => [k.name, k]) : []);
	const seconds = before ? (new Date(report.time) - new Date(before.time)) / 1000 : 0;
	const rate = (k, of) => seconds > 0 ? number(Math.round((k[of] - (old.get(k.name)?.[of] ?? 0)) / seconds)) : "–";
	const quantile = (durations, q) => span(Math.min(bound(durations.buckets, q), durations.max));
	table("kinds", kinds, [
		["kind", k => k.name], ["alive", k => number(k.alive), "n"], ["spawned", k => number(k.spawned), "n"],
		["failed", k => number(k.failed), "n"],
		["turns/s", k => rate(k, "turns"), "n"], ["wake-ups/s", k => rate(k, "woken"), "n"],
		["turn p50", k => quantile(k.took, .5), "n"], ["p99", k => quantile(k.took, .99), "n"], ["longest", k => span(k.took.max), "n"],
		["wake p50", k => quantile(k.wakes, .5), "n"], ["p99", k => quantile(k.wakes, .99), "n"], ["longest", k => span(k.wakes.max), "n"],
	]);

	const counts = {};
	for (const s of report.schedulers) {
		for (const [name, n] of Object.entries(s.counts)) counts[name] = (counts[name] ?? 0) + n;
	}
	table("counts", Object.entries(counts).sort(), [["count", c => c[0]], ["now", c => number(c[1]), "n"]]);
	at("sum").textContent = `${number(counts.tasks ?? 0)} tasks on ${report.schedulers.length} schedulers`;
	before = report;
}

// told says in a line what a stall was, or is.
function told(s) {
	const of = s.kind ? `a turn of ${s.kind}` + (s.task ? ` (${s.scheduler}/${s.task})` : "") : "a pass";
	return `${new Date(s.began).toLocaleTimeString()}: scheduler ${s.scheduler}, ${of}` + (s.peer ? ` with ${s.peer}` : "") +
		` ${s.ended ? "took" : "has taken"} ${span(s.lasted)}: ${s.cause}` + (s.detail ? ` (${s.detail})` : "") +
		(s.func ? ` in ${s.func}, ${s.at}` : "") + (s.file ? `; the last events: ${s.file}` : "");
}

// showStalls keeps what has been opened open.
function showStalls(stalls) {
	at("stalls").hidden = stalls.length === 0;
	const list = at("stall-list");
	const shown = new Map([...list.children].map(e => [e.dataset.id, e]));
	list.replaceChildren(...stalls.map(s => {
		const id = `${s.scheduler} ${s.began}`;
		const e = shown.get(id) ?? element("li");
		if (!shown.has(id)) {
			e.dataset.id = id;
			const details = element("details");
			details.append(element("summary"), element("pre"));
			e.append(details);
		}
		e.querySelector("summary").textContent = told(s);
		const stack = s.stack?.join("\n") ?? "Its stack could not be had.", shows = e.querySelector("pre");
		if (shows.textContent !== stack) shows.textContent = stack; // it may be had only when the stall is looked at again
		return e;
	}));
}

async function ask() {
	let answer;
	try {
		const response = await fetch(url("tasks.json", {find: at("find").value}));
		if (!response.ok) throw new Error(await response.text());
		answer = await response.json();
	} catch (error) {
		at("found").textContent = `No answer: ${error.message}`;
		return;
	}
	const count = (matching, total, what, rows) => `${number(matching)} of ${number(total)} ${what}` +
		(matching > rows.length ? `, the first ${rows.length} of them below` : "");
	at("found").textContent = count(answer.matching, answer.total, "tasks", answer.tasks) + (answer.total_processes
		? "; " + count(answer.matching_processes, answer.total_processes, "processes", answer.processes) : "");
	const open = new Set([...document.querySelectorAll("#tree details[open]")].map(e => e.dataset.kind));
	at("tree").replaceChildren(...answer.tree.map(kind => {
		const e = element("details"), list = element("ul");
		e.dataset.kind = kind.kind;
		e.open = open.has(kind.kind);
		e.append(element("summary", `${kind.kind}: ${number(kind.n)}`), list);
		for (const w of kind.waits) list.append(element("li", `${number(w.n)} × ${w.what}`));
		return e;
	}));
	table("tasks", answer.tasks, [
		["task", t => `${t.scheduler}/${t.id}`], ["state", t => t.told ? t.state + ", told to end" : t.state], ["age", t => span(t.age), "n"],
		["last turn", t => t.since ? span(t.since) + " ago" : "now", "n"], ["kind", t => t.kind], ["name", t => t.name], ["peer", t => t.peer ?? ""],
		["waits for", t => t.waits?.join(", ") ?? "", "long"],
	]);
	table("processes", answer.processes, [
		["process", p => String(p.id)], ["state", p => p.state],
		["mailbox", p => p.limit ? `${p.mailbox} of ${p.limit}` : String(p.mailbox), "n"],
		["dropped", p => number(p.dropped ?? 0), "n"], ["turn", p => p.turn ? span(p.turn) : "–", "n"],
		["kind", p => p.kind], ["name", p => p.name ?? ""],
	]);
}

function state(name, text) {
	at("state").dataset.state = name;
	at("state").textContent = text;
}

at("ask").addEventListener("submit", event => {
	event.preventDefault();
	ask();
});
setInterval(() => at("again").checked && !document.hidden && ask(), 2000);

for (const a of document.querySelectorAll("a[data-path]")) a.href = url(a.dataset.path);

// A browser makes a new connection when this one ends. It gives up after an answer like 401.
const events = new EventSource(url("events"));
events.onopen = () => state("on", "Live");
events.onmessage = event => show(JSON.parse(event.data));
events.onerror = () => state("lost", events.readyState === EventSource.CLOSED
	? "Refused: is the token in the address of this page right?" : "Not connected: trying again …");
