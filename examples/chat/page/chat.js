// The page of the chat. What others have typed is shown by textContent alone, so it is never taken for HTML.

const at = id => document.getElementById(id);
const log = at("log"), door = at("door"), text = at("text");

const most = 500; // messages that are kept on the page
const mostPending = 8; // lines that wait to be said; with the join, fewer than the server calls too fast
const pauses = {first: 500, longest: 30_000}; // before a new connection, in ms
const asks = 30_000; // how often the page asks who is in a crowd, in ms

let socket = null; // the connection, also while it is being made
let me = ""; // the name that is wanted
let room = "";
let inside = false; // the room has welcomed this connection
let stays = false; // and some connection before: then a new one is made when this one ends
let failures = 0; // in a row
let patience = 3; // failures until a name that is taken is believed to be another visitor's
let retry = 0; // the timer of the next attempt
let names = new Set();
let here = 0;
let crowded = false; // nobody is told who comes and leaves
let addresses = [location.host]; // where the chat is
let address = 0; // which of them is in use
const earliest = {epoch: "earliest", offset: 0};
let place = earliest; // of the last line that has come, in the history of the room
const pending = new Map(); // lines that the room has not said yet, by id
const shown = new Set(); // the latest lines on the page, by member and id

const asked = () => {
	try {
		return decodeURIComponent(location.hash.slice(1)) || "lobby";
	} catch {
		return "lobby";
	}
};

// remember keeps the name, and the key, for a reload of this window.
const remember = (what, value) => { try { sessionStorage.setItem(what, value); } catch { /* not allowed: then not */ } };
const remembered = what => { try { return sessionStorage.getItem(what) ?? ""; } catch { return ""; } };

const random = bytes => Array.from(crypto.getRandomValues(new Uint8Array(bytes)), b => b.toString(16).padStart(2, "0")).join("");

const key = remembered("key") || random(16); // the server knows this window by it when it comes again
remember("key", key);

function connect() {
	clearTimeout(retry);
	socket?.close();
	inside = false;
	state("wait", "Connecting …");
	const url = new URL("ws", location.href.replace(/^http/, "ws").replace(/[?#].*/, ""));
	url.host = addresses[address];
	const fresh = new WebSocket(url);
	socket = fresh;
	fresh.onopen = () => send({type: "join", room, name: me, key, ...place});
	fresh.onmessage = event => fresh === socket && receive(JSON.parse(event.data));
	fresh.onclose = event => fresh === socket && lost(event.code === 1001);
}

const send = wish => socket?.readyState === WebSocket.OPEN && (socket.send(JSON.stringify(wish)), true);

// lost is called when the connection has ended, or could not be made. The next attempt is at the next address. Each waits longer
// than the one before, and not all pages come back at the same time.
function lost(ends) {
	socket = null;
	if (inside) {
		inside = false;
		note(ends ? "The chat ends." : "The connection is lost.");
	}
	address = (address + 1) % addresses.length;
	if (!stays) {
		state("lost", "Not connected");
		open(door.hidden ? "The connection has ended." : "There is no connection to the chat. Try again.");
		return;
	}
	const pause = Math.min(pauses.longest, pauses.first * 2 ** failures++) * (0.5 + Math.random() / 2);
	state("lost", `Disconnected. Trying again in ${Math.max(1, Math.round(pause / 1000))} s`);
	retry = setTimeout(connect, pause);
}

function receive(news) {
	switch (news.type) {
	case "welcome":
		enter(news);
		break;
	case "taken":
		if (stays && !inside && failures < patience) { // by a connection that the server has not missed yet
			socket.close();
		} else {
			turnedAway("Somebody in this room has that name. Choose another one.");
		}
		break;
	case "follows":
		if (!news.complete && place !== earliest) {
			note("Some of what was said meanwhile is missing here.");
		}
		place = {epoch: news.epoch, offset: news.offset};
		break;
	case "ready":
		for (const [id, words] of pending) {
			send({type: "say", text: words, id});
		}
		break;
	case "said":
		place = {epoch: news.epoch, offset: news.offset};
		say(news);
		break;
	case "came":
	case "left":
		if (news.type === "came") {
			names.add(news.name);
		} else {
			names.delete(news.name);
		}
		here = names.size;
		if (news.name !== me) {
			note(news.type === "came" ? " has come" : " has left", news.name);
		}
		count();
		break;
	case "names":
		here = news.here;
		names = new Set(news.names ?? names);
		count();
		break;
	case "refused":
		if (inside) {
			warn(news.text);
			text.value ||= pending.get(news.id) ?? "";
			pending.delete(news.id);
			history.replaceState(null, "", "#" + encodeURIComponent(room)); // if it was another room
		} else {
			turnedAway(news.text);
		}
		break;
	case "notice":
		note(news.text);
		break;
	}
}

function enter(news) {
	const before = at("room").textContent;
	const again = stays && before === news.room;
	({room, name: me, here} = news);
	names = new Set(news.names);
	crowded = false;
	addresses = [...new Set([...addresses, ...news.peers ?? []])];
	inside = stays = true;
	failures = 0;
	patience = 9; // more than a minute
	remember("name", me);
	history.replaceState(null, "", "#" + encodeURIComponent(room));
	if (!again) {
		log.replaceChildren();
		shown.clear();
		pending.clear();
		place = earliest;
	}
	at("room").textContent = room;
	document.title = "#" + room + " – chat";
	door.hidden = true;
	at("talk").hidden = at("people").hidden = at("hash").hidden = false;
	warn("");
	state("on", "Connected as " + me);
	note(again ? "You are back." : "You have come in.");
	if (!again) {
		show(wide.matches);
		text.focus();
	}
	count();
}

function turnedAway(why) {
	const was = socket;
	socket = null;
	was.close();
	state("off", "Not connected");
	open(why);
}

// open shows the door, with what was wrong.
function open(wrong) {
	stays = inside = false;
	at("talk").hidden = at("people").hidden = at("here").hidden  = true;
	door.hidden = false;
	at("refused").textContent = wrong;
	at("name").value ||= me;
	at("where").value = room || asked();
	at("name").select();
}

function state(kind, words) {
	at("state").dataset.state = kind;
	at("state").textContent = words;
}

function warn(words) {
	at("notice").textContent = words;
}

function element(tag, className, words) {
	const e = document.createElement(tag);
	e.className = className;
	e.textContent = words;
	return e;
}

function say({name, text: words, by: who, id, at: ms}) {
	const mine = name === me;
	if (id) {
		pending.delete(id);
		const line = who + " " + id;
		if (shown.has(line)) { // this page, or another one, has sent it again
			return;
		}
		shown.add(line);
		if (shown.size > 2 * most) {
			shown.delete(shown.values().next().value);
		}
	}
	const previous = log.lastElementChild;
	const item = element("li", "said", "");
	item.classList.toggle("mine", mine);
	item.classList.toggle("again", previous?.dataset.by === name);
	item.dataset.by = name;
	const head = element("div", "head", "");
	const by = element("bdi", "by", name);
	by.style.setProperty("--hue", hue(name));
	const then = new Date(ms);
	const when = element("time", "", then.toLocaleTimeString([], {hour: "2-digit", minute: "2-digit"}));
	when.dateTime = then.toISOString();
	head.append(by, when);
	const what = element("div", "text", words);
	what.dir = "auto";
	item.append(head, what);
	add(item, mine);
}

// note adds what nobody has said, about somebody or nobody.
function note(words, who) {
	const item = element("li", "event", "");
	if (who) {
		item.append(element("bdi", "", who));
	}
	item.append(words);
	add(item, false);
}

// add scrolls down if the end was in sight: who reads what is above goes on reading.
function add(item, always) {
	const end = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
	log.append(item);
	while (log.childElementCount > most) {
		log.firstElementChild.remove();
	}
	if (end || always) {
		down();
	} else {
		at("newer").hidden = false;
	}
}

function down() {
	log.scrollTop = log.scrollHeight;
	at("newer").hidden = true;
}

// hue is a color for a name, always the same.
function hue(name) {
	let h = 0;
	for (const c of name) {
		h = (h * 31 + c.codePointAt(0)) % 360;
	}
	return h;
}

const wide = matchMedia("(min-width: 40.01rem)");

function count() {
	crowded ||= here > names.size;
	at("people").textContent = `${here} here`;
	at("people").setAttribute("aria-label", `${here} here. Show who`);
	if (at("here").hidden) {
		return;
	}
	const known = [...names].sort((a, b) => a.localeCompare(b));
	at("names").replaceChildren(...known.map(name => {
		const item = element("li", name === me ? "me" : "", "");
		item.append(element("bdi", "", name), name === me ? " (you)" : "");
		return item;
	}));
	at("more").textContent = here > known.length ? `and ${here - known.length} more` : "";
}

// show opens or closes the list of who is there. Of a crowd the names come now.
function show(open) {
	at("here").hidden = !open;
	at("people").setAttribute("aria-expanded", String(open));
	if (open && here > names.size) {
		send({type: "who"});
	}
	count();
}

door.addEventListener("submit", event => {
	event.preventDefault();
	me = at("name").value;
	room = at("where").value;
	place = earliest;
	stays = false;
	failures = 0;
	at("refused").textContent = "";
	connect();
});

at("say").addEventListener("submit", event => {
	event.preventDefault();
	const words = text.value;
	if (!words.trim()) {
		return;
	}
	if (pending.size === mostPending) {
		warn(inside ? "You type too fast. Wait a moment, please." : "There is no connection at the moment. The message was not sent.");
		return;
	}
	const id = random(8);
	pending.set(id, words);
	const sent = inside && send({type: "say", text: words, id});
	text.value = "";
	warn(sent ? "" : "There is no connection at the moment. The message is sent when there is one.");
});

at("people").addEventListener("click", () => show(at("here").hidden));
wide.addEventListener("change", () => at("talk").hidden || show(wide.matches));
at("newer").addEventListener("click", down);
log.addEventListener("scroll", () => {
	if (log.scrollHeight - log.scrollTop - log.clientHeight < 40) {
		at("newer").hidden = true;
	}
});
addEventListener("resize", () => at("newer").hidden && down());
addEventListener("keydown", event => {
	if (event.key === "Escape" && !at("here").hidden && !wide.matches) {
		show(false);
		at("people").focus();
	}
});
addEventListener("hashchange", () => {
	if (inside && asked() !== room) {
		send({type: "join", room: asked(), ...earliest});
	} else {
		place = earliest;
		at("where").value = room = asked();
	}
});
addEventListener("online", () => stays && !socket && connect());

setInterval(() => inside && crowded && send({type: "who"}), asks);

at("where").value = room = asked();
at("name").value = me = remembered("name");
if (me) { // a reload: the old connection may still have the name
	stays = true;
	connect();
} else {
	at("name").focus();
}
