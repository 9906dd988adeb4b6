// The page of package inspect. What comes from the server is shown by textContent alone, so it is never taken for HTML.

const at = id => document.getElementById(id);
const token = new URLSearchParams(location.search).get("token") ?? "";
const url = (path, parameters = {}) => path + "?" + new URLSearchParams({token, ...parameters});

function element(name, text = "", kind = "") {
	const e = document.createElement(name);
	e.textContent = text;
	if (kind) e.className = kind;
	return e;
}

const shown = new Map(); // the tables, by their names

// show shows a table as the server has made it, unless it is shown already: a text that somebody selects stays. below(i) makes what
// stands below the row i.
function show(table, below = () => []) {
	const {name, heads, rows, notes} = table, text = JSON.stringify(table);
	if (shown.get(name) === text) return;
	shown.set(name, text);
	const kind = cell => /^[-\d.]+(%|[a-zµ][\w.µ]*)?$/.test(cell) ? "n" : cell.length > 40 ? "long" : "";
	const line = (type, cells, kinds) => {
		const e = element("tr");
		e.append(...cells.map((cell, i) => element(type, cell, kind(kinds[i]))));
		return e;
	};
	const body = rows.flatMap((cells, i) => [line("td", cells, cells), ...below(i)]);
	const head = rows.length ? [line("th", heads, rows[0])] : [];
	at(name).replaceChildren(...notes.map(note => element("caption", note)), ...head, ...body);
	at(name).closest("section").hidden &&= rows.length === 0;
}

// stack is a row with the stack of a stall.
function stack(stall) {
	const id = `${stall.scheduler} ${stall.began}`, was = document.querySelector(`details[data-id="${CSS.escape(id)}"]`);
	const row = element("tr"), cell = element("td"), details = element("details");
	details.dataset.id = id;
	details.open = Boolean(was?.open);
	details.append(element("summary", [stall.func, stall.file].filter(Boolean).join(", ") || "no stack"), element("pre", stall.stack?.join("\n") ?? "Its stack could not be had."));
	cell.colSpan = 99;
	cell.append(details);
	row.append(cell);
	return row;
}

const kept = 60; // loads that a lane shows
const lanes = new Map(); // by the index of the scheduler

function lane(index) {
	const e = element("div", "", "lane");
	const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
	svg.setAttribute("viewBox", `0 0 ${kept - 1} 100`);
	svg.setAttribute("preserveAspectRatio", "none");
	svg.setAttribute("role", "img");
	const curve = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
	svg.append(curve);
	e.append(element("b", index), svg);
	at("lanes").append(e);
	return {e, svg, curve, loads: []};
}

// draw adds the load of a scheduler to its lane, such as "12%"; "-" if nothing is known.
function draw(scheduler, load) {
	if (!lanes.has(scheduler.index)) lanes.set(scheduler.index, lane(scheduler.index));
	const l = lanes.get(scheduler.index);
	l.e.toggleAttribute("data-stuck", Boolean(scheduler.late));
	if (load === "-") return;
	l.loads = [...l.loads, parseInt(load)].slice(-kept);
	l.svg.setAttribute("aria-label", `load of scheduler ${scheduler.index}: ${load}`);
	l.curve.setAttribute("points", l.loads.map((v, i) => `${kept - l.loads.length + i},${98 - .96 * v}`).join(" "));
}

function showReport(report) {
	const findings = report.findings ?? [];
	at("sum").textContent = report.title;
	at("findings").replaceChildren(...findings.map(f => element("li", f)));
	at("nofindings").hidden = findings.length > 0;
	const [schedulers] = report.tables, load = schedulers.heads.indexOf("LOAD");
	report.schedulers.forEach((s, i) => draw(s, schedulers.rows[i][load]));
	for (const table of report.tables) show(table, table.name === "stalls" ? i => [stack(report.stalls.last[i])] : undefined);
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
	at("found").textContent = answer.tables.flatMap(table => table.notes).join("; ");
	for (const table of answer.tables) show({...table, notes: []});
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

// watch asks for the Report each second, until the server refuses. If there is no answer it tries again.
async function watch() {
	try {
		const response = await fetch(url("json"));
		if (response.status === 401) return state("lost", "Refused: is the token in the address of this page right?");
		if (!response.ok) throw new Error(response.status);
		showReport(await response.json());
		state("on", "Live");
	} catch {
		state("lost", "Not connected: trying again …");
	}
	setTimeout(watch, 1000);
}
watch();
