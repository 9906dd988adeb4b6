const at = id => document.getElementById(id);

// show shows what came of a promise.
const show = async (where, promise) => {
	where.textContent = "…";
	where.textContent = await promise.catch(e => `Failed: ${e.message}`);
};

const ask = async (path, options) => {
	const response = await fetch(path, options);
	const text = (await response.text()).trim();
	return response.ok ? text : `${response.status} ${response.statusText}\n${text}`;
};

const events = new EventSource("events");
events.onmessage = e => {
	at("clock").textContent = new Date(e.data).toLocaleTimeString();
	at("clock").dateTime = e.data;
	at("stream").textContent = "The time of the server, once a second.";
};
events.onerror = () => at("stream").textContent = "The connection is lost. The browser tries again.";
events.addEventListener("end", e => {
	events.close();
	at("stream").textContent = e.data;
});

at("file").onchange = e => {
	const [file] = e.target.files;
	if (file) show(at("digest"), ask("sha256", {method: "POST", body: file}));
};

at("ask").onclick = () => show(at("answer"), ask("api/"));

for (const [name, value] of Object.entries(await (await fetch("me")).json())) {
	const term = document.createElement("dt"), meaning = document.createElement("dd");
	term.textContent = name;
	meaning.textContent = value;
	at("me").append(term, meaning);
}
