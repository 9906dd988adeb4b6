// The page of examples/jobs. What comes from the server is shown by textContent alone, so it is never taken for HTML.

const at = id => document.getElementById(id);
const states = ["waiting", "at work", "finished", "failed", "suspended", "cancelled"];
const verbs = {suspend: "Suspend", resume: "Resume", retry: "Retry", cancel: "Cancel"};
const number = n => n.toLocaleString("en");

let events = null; // the stream
let token = ""; // for what changes something
let before = ""; // the page of tasks: those with lower numbers
let chains = {}; // the stages of each kind
const rows = new Map(); // the rows of the table, by the numbers of their tasks

function element(name, kind = "", text = "") {
	const e = document.createElement(name);
	if (kind) e.className = kind;
	e.textContent = text;
	return e;
}

// set changes a text only if it is another one, so that what is selected stays.
function set(e, text) {
	if (e.textContent !== text) e.textContent = text;
}

function button(text, label, act) {
	const e = element("button", "quiet", text);
	e.type = "button";
	if (label) e.setAttribute("aria-label", label);
	e.addEventListener("click", act);
	return e;
}

function option(to, value) {
	const e = element("option", "", value);
	e.value = value;
	at(to).append(e);
}

// post has something changed. Another process may have another token: then it is asked for again, once.
async function post(path) {
	for (const again of [true, false]) {
		if (!token) token = await (await fetch("api/token")).text();
		const response = await fetch("api/" + path, {method: "POST", headers: {"X-Jobs-Token": token}});
		const answer = await response.json();
		if (response.ok) return answer;
		if (response.status !== 403 || !again) throw new Error(answer.error);
		token = "";
	}
}

// change posts, and says below the form what has become of it.
async function change(path, done) {
	try {
		const answer = await post(path);
		at("said").textContent = answer.changed === false ? "Nothing has changed." : done;
	} catch (error) {
		at("said").textContent = `No success: ${error.message}`;
	}
}

// showKinds makes the table once, and changes its texts from then on.
function showKinds(kinds) {
	const table = at("kinds");
	if (table.rows.length !== kinds.length + 1) {
		const head = element("tr");
		head.append(element("th", "", "Kind"), element("th"), ...states.map(name => element("th", "n", name)));
		table.replaceChildren(head);
		for (const k of kinds) {
			const row = element("tr");
			const cells = Array.from({length: 2 + states.length}, () => element("td"));
			row.append(...cells);
			cells[0].textContent = k.name;
			const pause = button("", "", () => {
				const paused = pause.dataset.paused === "true";
				change(`kinds/${encodeURIComponent(k.name)}/${paused ? "resume" : "pause"}`, `${k.name} is ${paused ? "resumed" : "paused"}.`);
			});
			cells[1].append(pause);
			for (const [i, state] of states.entries()) {
				cells[2 + i].className = "n";
				cells[2 + i].append(button("", "", () => {
					at("kind").value = k.name;
					at("which").value = state;
					filter();
				}));
			}
			table.append(row);
			option("of", k.name);
			option("kind", k.name);
			chains[k.name] = k.stages;
		}
		at("kind").value = at("kind").dataset.wanted ?? ""; // that of the address
	}
	const sums = {};
	for (const [i, k] of kinds.entries()) {
		const cells = table.rows[i + 1].cells;
		for (const [j, state] of states.entries()) {
			const n = k.counts[state] ?? 0, e = cells[2 + j].firstChild;
			sums[state] = (sums[state] ?? 0) + n;
			set(e, number(n));
			e.setAttribute("aria-label", `${k.name}, ${state}: ${number(n)}`);
		}
		const pause = cells[1].firstChild;
		set(pause, k.paused ? "Resume" : "Pause");
		pause.dataset.paused = k.paused;
		pause.setAttribute("aria-label", `${k.paused ? "Resume" : "Pause"} ${k.name}`);
	}
	at("sum").textContent = states.filter(s => sums[s]).map(s => `${number(sums[s])} ${s}`).join(" · ");
}

// rowOf makes the row of a task, without what may change.
function rowOf(t) {
	const row = element("tr"), cells = Array.from({length: 6}, () => element("td"));
	row.append(...cells);
	cells[0].append(button(String(t.id), `Open task ${t.id}`, () => open(t.id)));
	cells[1].textContent = t.kind;
	const bar = element("div", "bar");
	bar.setAttribute("role", "img");
	for (let i = 1; i < (chains[t.kind] ?? []).length; i += 2) {
		const part = element("i");
		part.append(element("b"));
		bar.append(part);
	}
	cells[2].append(bar, element("div", "stage"));
	cells[3].append(element("div", "what"), element("div", "why"));
	for (const [verb, text] of Object.entries(verbs)) {
		const e = button(text, `${text} task ${t.id}`, () => change(`tasks/${t.id}/${verb}`, `Task ${t.id}: ${text.toLowerCase()} was asked for.`));
		e.dataset.verb = verb;
		cells[5].append(e);
	}
	return row;
}

// when is a time today, or a date with a time.
function when(time) {
	const t = new Date(time), today = t.toDateString() === new Date().toDateString();
	return today ? t.toLocaleTimeString() : t.toLocaleString();
}

// fill shows what may have changed.
function fill(row, t) {
	const cells = row.cells, stages = chains[t.kind] ?? [], reached = stages.indexOf(t.stage);
	const part = t.of ? t.done / t.of : 0;
	row.dataset.state = t.state;
	cells[2].querySelectorAll("b").forEach((e, i) => {
		const dynamic = 2 * i + 1;
		const width = reached > dynamic ? 1 : reached >= dynamic - 1 ? part : 0;
		e.style.width = `${100 * width}%`;
	});
	const stage = t.stage + (t.of && t.state !== "finished" ? `, step ${t.done} of ${t.of}` : "");
	set(cells[2].querySelector(".stage"), stage);
	cells[2].firstChild.setAttribute("aria-label", `${Math.max(0, Math.floor(reached / 2))} of ${(stages.length - 1) / 2} stages are done`);
	let what = t.state;
	if (t.wanted) what += `, will ${t.wanted}`;
	if (t.due && t.state === "failed") what += `, again at ${when(t.due)}`;
	if (t.due && t.state === "waiting" && new Date(t.due) > Date.now()) what += ` until ${when(t.due)}`;
	set(cells[3].querySelector(".what"), what);
	set(cells[3].querySelector(".why"), t.failure ? `attempt ${t.attempt}: ${t.failure}` : "");
	set(cells[4], when(t.changed));
	for (const e of cells[5].children) e.hidden = !t.can.includes(e.dataset.verb);
}

// showTasks keeps the rows of tasks that stay, so that the focus of the keyboard does.
function showTasks(tasks) {
	const body = at("tasks").tBodies[0], shown = new Set(tasks.map(t => t.id));
	for (const [id, row] of rows) {
		if (shown.has(id)) continue;
		row.remove();
		rows.delete(id);
	}
	let place = body.firstChild;
	for (const t of tasks) {
		let row = rows.get(t.id);
		if (!row) rows.set(t.id, row = rowOf(t));
		fill(row, t);
		if (row === place) place = place.nextSibling;
		else body.insertBefore(row, place);
	}
	at("none").hidden = tasks.length > 0;
}

function show(view) {
	showKinds(view.kinds);
	showTasks(view.tasks);
	at("newest").disabled = !before;
	at("older").disabled = !view.more;
	at("older").dataset.before = view.tasks.at(-1)?.id ?? "";
}

// open shows a task and its errors.
async function open(id) {
	let t;
	try {
		const response = await fetch(`api/tasks/${id}`);
		t = await response.json();
		if (!response.ok) throw new Error(t.error);
	} catch (error) {
		at("said").textContent = `Task ${id}: ${error.message}`;
		return;
	}
	at("h-opened").textContent = `Task ${t.id}: ${t.kind}, ${t.state}`;
	const list = document.querySelector("#opened dl");
	list.replaceChildren();
	for (const [name, text] of [["Stage", t.stage], ["Data", t.data], ["Failed attempts of this stage", String(t.attempt ?? 0)],
		["Worker", t.worker ?? "none yet"], ["Added", new Date(t.created).toLocaleString()], ["Changed", new Date(t.changed).toLocaleString()]]) {
		list.append(element("dt", "", name), element("dd", "", text));
	}
	at("noerrors").hidden = t.failures.length > 0;
	at("errors").replaceChildren(...t.failures.map(f => {
		const e = element("li", "", `${new Date(f.time).toLocaleString()}, attempt ${f.attempt} of ${f.stage}`);
		e.append(element("pre", "", f.text));
		return e;
	}));
	at("opened").showModal();
}

function state(name, text) {
	at("state").dataset.state = name;
	set(at("state"), text);
}

// listen opens the stream of what the filter wants. A browser makes a new connection when one ends, unless the answer was an
// error: then the page does.
function listen() {
	events?.close();
	const wanted = new URLSearchParams();
	for (const [name, value] of [["kind", at("kind").value || at("kind").dataset.wanted], ["state", at("which").value], ["before", before]]) {
		if (value) wanted.set(name, value);
	}
	history.replaceState(null, "", "?" + wanted);
	const mine = events = new EventSource("events?" + wanted);
	events.onmessage = event => {
		state("on", "Live");
		show(JSON.parse(event.data));
	};
	events.addEventListener("outage", event => state("lost", `The database does not answer: ${JSON.parse(event.data)}`));
	events.onerror = () => {
		state("lost", "Not connected: trying again …");
		if (mine.readyState === EventSource.CLOSED) setTimeout(() => mine === events && listen(), 2000);
	};
}

// filter begins at the newest tasks again.
function filter() {
	before = "";
	delete at("kind").dataset.wanted;
	listen();
}

for (const s of states) option("which", s);
const address = new URLSearchParams(location.search);
at("kind").dataset.wanted = address.get("kind") ?? "";
at("which").value = address.get("state") ?? "";
before = address.get("before") ?? "";

at("kind").addEventListener("change", filter);
at("which").addEventListener("change", filter);
at("filter").addEventListener("submit", event => event.preventDefault());
at("newest").addEventListener("click", filter);
at("older").addEventListener("click", () => {
	before = at("older").dataset.before;
	listen();
});
at("add").addEventListener("submit", event => {
	event.preventDefault();
	const n = at("n").value;
	change("tasks?" + new URLSearchParams({kind: at("of").value, n}), `${number(Number(n))} tasks are added.`);
});
listen();
