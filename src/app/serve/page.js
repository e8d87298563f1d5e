"use strict";
// A conversation with the server: messages are sent to /v1/chat/completions, and the answer is read as a stream.
const get = id => document.getElementById(id);
let messages = [], running = null;

function headers() {
	const key = get("key").value, all = { "Content-Type": "application/json" };
	if (key)
		all.Authorization = "Bearer " + key;
	return all;
}

function show_error(text) {
	get("error").textContent = text;
	get("error").hidden = !text;
}

function add_message(role, text) {
	const box = document.createElement("div");
	box.className = "message " + role;
	box.textContent = text;
	get("messages").append(box);
	box.scrollIntoView({ block: "end" });
	return box;
}

async function error_of(reply) {
	try {
		return (await reply.json()).error.message;
	} catch {
		return "the server answered with status " + reply.status;
	}
}

async function load_models() {
	const reply = await fetch("/v1/models", { headers: headers() });
	if (!reply.ok) {
		show_error(await error_of(reply));
		return;
	}
	show_error("");
	get("model").replaceChildren(...(await reply.json()).data.map(m => new Option(m.id, m.id)));
}

function request() {
	const system = get("system").value, tokens = parseInt(get("tokens").value, 10);
	const body = {
		model: get("model").value, stream: true, stream_options: { include_usage: true },
		temperature: Number(get("temperature").value),
		messages: system ? [{ role: "system", content: system }, ...messages] : messages,
	};
	if (tokens > 0)
		body.max_tokens = tokens;
	return JSON.stringify(body);
}

// Calls take for the object of each event.
async function read_events(reply, take) {
	const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = "";
	for (;;) {
		const { value, done } = await reader.read();
		if (done)
			return;
		const events = (rest + value).split("\n\n");
		rest = events.pop();
		for (const e of events)
			if (e.startsWith("data: ") && e !== "data: [DONE]")
				take(JSON.parse(e.slice(6)));
	}
}

async function answer() {
	const begin = performance.now(), box = add_message("assistant", "");
	let text = "", first = 0;
	running = new AbortController();
	get("send").hidden = true;
	get("stop").hidden = false;
	show_error("");
	try {
		const reply = await fetch("/v1/chat/completions",
			{ method: "POST", headers: headers(), body: request(), signal: running.signal });
		if (!reply.ok)
			throw new Error(await error_of(reply));
		await read_events(reply, o => {
			if (o.error)
				throw new Error(o.error.message);
			if (o.choices.length && o.choices[0].delta.content) {
				first ||= performance.now();
				text += o.choices[0].delta.content;
				box.textContent = text;
			}
			if (o.usage) {
				const s = (performance.now() - (first || begin)) / 1000;
				get("stats").textContent = `${o.usage.prompt_tokens} + ${o.usage.completion_tokens} tokens, ` +
					`${(o.usage.completion_tokens / s).toFixed(1)} tokens/s`;
			}
		});
	} catch (e) {
		if (e.name !== "AbortError")
			show_error(e.message);
	}
	running = null;
	get("send").hidden = false;
	get("stop").hidden = true;
	if (text)
		messages.push({ role: "assistant", content: text });
	else
		box.remove();
}

get("form").addEventListener("submit", e => {
	const text = get("text").value;
	e.preventDefault();
	if (!text.trim() || running)
		return;
	get("text").value = "";
	if (messages.length && messages[messages.length - 1].role === "user")
		messages.pop(); // it was not answered
	messages.push({ role: "user", content: text });
	add_message("user", text);
	answer();
});
get("text").addEventListener("keydown", e => {
	if (e.key === "Enter" && !e.shiftKey) {
		e.preventDefault();
		get("form").requestSubmit();
	}
});
get("stop").addEventListener("click", () => running && running.abort());
get("reset").addEventListener("click", () => {
	if (running)
		running.abort();
	messages = [];
	get("messages").replaceChildren();
	get("stats").textContent = "";
	show_error("");
});
get("key").addEventListener("change", load_models);
load_models().catch(e => show_error(e.message));
