// What only a browser can do: the clipboard, dropped files, dialogs, a clock. All else is HTML from the server.
"use strict";

const byId = (id) => document.getElementById(id);
const session = () => byId("main")?.dataset.session;
const sequence = () => byId("now")?.dataset.sequence;
const isOn = (name) => byId(name)?.checked;

function say(text, isFault) {
  const line = document.createElement("p");
  line.textContent = text;
  if (isFault) { line.className = "fault"; line.setAttribute("role", "alert"); }
  byId("said").replaceChildren(line);
}

// What is said goes after a while; a fault stays until it is closed.
const SAID_MS = 5000;
let saidUntil = 0;

function hide() { byId("said").replaceChildren(); }

function heed() {
  clearTimeout(saidUntil);
  if (!byId("said").querySelector(".fault")) saidUntil = setTimeout(hide, SAID_MS);
}

// --- who is at the other end --------------------------------------------------------------------

// The tab's key is shown to the server; the document's secret never: by it the server proves that it is the page,
// before anything is sent to it, and with all that comes from it. A browser asks whoever has the port.
const given = document.querySelector("meta[name=keys]");
given.remove();
const [, handed, name, secret] = given.content.match(/(.*) (.*)\.(.*)/);
if (handed) {
  sessionStorage.setItem("key", handed);
  history.replaceState(null, "", "/");
}
const key = sessionStorage.getItem("key");
const bare = window.fetch.bind(window);
const OPEN = "Open it anew: `codingagent page` in a terminal prints the address.";
let isOver = !key;

function warn(text) {
  const line = byId("over") ?? document.body.appendChild(document.createElement("p"));
  line.textContent = text;
  line.id = "over";
  line.setAttribute("role", "alert");
}

function end(why) {
  isOver = true;
  sessionStorage.removeItem("key");
  warn(`${why} ${OPEN}`);
}

async function proofFor(nonce) {
  const bytes = (text) => new TextEncoder().encode(text);
  const made = await crypto.subtle.importKey("raw", bytes(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const proof = new Uint8Array(await crypto.subtle.sign("HMAC", made, bytes(nonce)));
  return [...proof].map((each) => each.toString(16).padStart(2, "0")).join("");
}

async function proven(url, options) {
  const nonce = `${name}.${crypto.randomUUID()}`;
  const proof = await proofFor(nonce);
  const headers = { ...options.headers, "Codingagent-Nonce": nonce };
  // Else a request of mode "same-origin", as htmx makes them, has no origin: Firefox goes by the standard here.
  const referrerPolicy = "origin";
  const response = await bare(url, { ...options, headers, referrerPolicy, redirect: "error", cache: "no-store" });
  if (response.headers.get("Codingagent-Proof") !== proof) end("The page that this tab belongs to has ended.");
  if (isOver) throw new Error("this tab belongs to no page");
  return response;
}

// htmx and its stream of events ask by it, too.
window.fetch = async (url, options = {}) => {
  if (isOver) throw new Error("this tab belongs to no page");
  try {
    await proven("/proof", { signal: options.signal });
    byId("over")?.remove();
    const response = await proven(url, { ...options, headers: { ...options.headers, "Codingagent-Key": key } });
    if (response.status === 403) end("The page was started again, with other keys.");
    if (isOver) throw new Error("this tab belongs to no page");  // else what it says would be shown in its place
    return response;
  } catch (fault) {
    if (!isOver && fault instanceof TypeError) warn(`The page does not answer. If it has ended: ${OPEN}`);
    throw fault;
  }
};

// A new tab has no key: one that has it hands it on, while the port is the page's. Other origins hear nothing.
const tabs = new BroadcastChannel("key");
tabs.onmessage = ({ data }) => {
  if (!data && !isOver) proven("/proof", {}).then(() => tabs.postMessage(key), () => {});
  if (!data || key) return;
  sessionStorage.setItem("key", data);
  location.reload();
};
if (!key) tabs.postMessage("");

document.addEventListener("closed", () => end("The page has ended; nothing is lost."));
document.addEventListener("htmx:sse:before:connection", (event) => { if (isOver) event.preventDefault(); });

// A browser that goes somewhere, or saves something, shows no key and asks for no proof: the tab does it itself.
const here = () => location.pathname + location.search;
let shownHere = "";

async function load() {
  shownHere = here();
  did.clear();
  focused = null;
  await htmx.ajax("GET", shownHere, { target: document.body, swap: "innerHTML" });
  new MutationObserver(heed).observe(byId("said"), { childList: true });
  look();
}

async function follow(event) {
  const link = event.target.closest?.("a[href]");
  if (!link || link.origin !== location.origin || link.hash || event.button > 1) return;
  event.preventDefault();
  const isApart = link.target || event.ctrlKey || event.metaKey || event.shiftKey || event.button === 1;
  if (link.hasAttribute("download")) save(link);
  else if (!await fetch("/proof").catch(() => null)) return;
  else if (isApart) window.open(link.href, "_blank", "noopener");  // one that is lost must not reach this one
  else {
    history.pushState(null, "", link.href);
    window.scrollTo(0, 0);
    load();
  }
}
window.addEventListener("popstate", () => { if (here() !== shownHere) load(); });
document.addEventListener("click", follow);
document.addEventListener("auxclick", follow);

const nameOf = (link) => link.download || decodeURIComponent(link.href.split("path=")[1] || "file").split("/").pop();

async function fetched(link) {
  const response = await fetch(link.href);
  if (!response.ok) throw new Error("");
  return response.blob();
}

async function save(link) {
  try {
    const href = URL.createObjectURL(await fetched(link));
    Object.assign(document.createElement("a"), { href, download: nameOf(link) }).click();
  } catch { say("It could not be downloaded.", true); }
}

// A drag carries what is there when it begins: the file itself, as an address that no browser takes above 2 MB.
const MOST_DRAGGED = 1_500_000;

document.addEventListener("pointerdown", async (event) => {
  const link = event.target.closest?.("a[download]");
  if (!link) return;
  delete link.dragged;
  const blob = await fetched(link).catch(() => null);
  const reader = new FileReader();
  reader.onload = () => { link.dragged = reader.result; };
  if (blob && blob.size < MOST_DRAGGED) reader.readAsDataURL(blob);
});

document.addEventListener("dragstart", (event) => {
  const link = event.target.closest?.("a[download]");
  if (!link) return;
  if (!link.dragged) { event.preventDefault(); say("It is too large to be dragged, or not here yet: click to save it.", true); return; }
  event.dataTransfer.setData("DownloadURL", `application/octet-stream:${nameOf(link)}:${link.dragged}`);
});

// --- send ---------------------------------------------------------------------------------------

async function textOf(url) {
  const response = await fetch(url);
  const text = await response.text();
  if (!response.ok) throw new Error(new DOMParser().parseFromString(text, "text/html").body.innerText.trim());
  return text;
}

async function copy(button) {
  try {
    // Safari and Firefox let a page write only while the click lasts: the text comes later, as a promise.
    const text = textOf(button.dataset.copy);
    if (window.ClipboardItem) {
      const blob = text.then((found) => new Blob([found], { type: "text/plain" }));
      await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
    } else {
      await navigator.clipboard.writeText(await text);
    }
    lastSeen = await text;
    const own = button.closest("[id^=chat-]");  // of a candidate, far from what is above
    if (own) say(button.dataset.then);
    else byId("copied").textContent = button.dataset.then;
    (own?.querySelector("textarea") ?? byId("paste"))?.focus();
  } catch (fault) {
    say(`It could not be copied (${fault.message}): download the file instead.`, true);
  }
}

// --- take ---------------------------------------------------------------------------------------

let lastSeen = "";

async function take(given, { isUnsure = false } = {}) {
  if (!session() || !sequence()) return;
  const isText = typeof given === "string";
  const query = new URLSearchParams({ sequence: sequence() });
  for (const file of isText ? [] : given) { query.append("name", file.name); query.append("size", file.size); }
  const body = isText ? given : new Blob(given);
  if (isUnsure) query.set("unsure", "1");
  const action = isOn("review") ? "review" : "answer";
  if (action === "review") say("The answer is being read.");
  else step = byId("now").dataset.step;
  const response = await fetch(`/s/${session()}/${action}?${query}`, { method: "POST", body });
  const html = await response.text();
  if (response.status === 409 && isText) {
    byId("by-hand").open = true;
    byId("answer").value = given;
    byId("answer").focus();
  }
  const isPlan = action === "review" && response.ok;
  const target = byId(isPlan ? "plan" : "said");
  target.innerHTML = html;
  htmx.process(target);
  if (isPlan) { hide(); target.querySelector("h3, button")?.focus(); }
  else if (!response.ok) step = "";
  else {
    did.delete("answer");
    if (byId("answer")) byId("answer").value = "";
  }
}

// The server keeps what is reviewed: it outlives the tab.
async function endReview(url) {
  if (url !== "drop") step = byId("now").dataset.step;
  const response = await fetch(`/s/${session()}/${url}`, { method: "POST" });
  byId("said").innerHTML = await response.text();
  if (response.ok) byId("plan").replaceChildren();
}

function applyPlan(button) {
  const skipped = [...document.querySelectorAll("#plan input[data-operation]:not(:checked)")];
  const query = new URLSearchParams({ ...button.dataset });
  query.set("skip", skipped.map((each) => each.dataset.operation).join(","));
  return endReview(`answer?${query}`);
}

async function paste({ isAsked }) {
  try {
    const text = await navigator.clipboard.readText();
    if (!text.trim()) { if (isAsked) say("The clipboard is empty: copy the chat's answer first.", true); return; }
    if (!isAsked && (text === lastSeen || !text.includes(`[REPLY session="${session()}"`))) return;
    lastSeen = text;
    await take(text, { isUnsure: true });
  } catch {
    if (isAsked) say("This browser does not let the page read the clipboard: press Ctrl-V instead.", true);
  }
}

// Firefox and Safari give it to a key, or to a second click, and to no page by itself: a tick would do nothing.
const mayRead = navigator.permissions.query({ name: "clipboard-read" }).then(() => true, () => false);

const isField = (target) => target.closest?.("textarea, input:not([type=checkbox]), [contenteditable]");

document.addEventListener("paste", (event) => {
  const isAnswer = event.clipboardData.getData("text/plain").includes(`[REPLY session="${session()}"`);
  if (!byId("take") || event.target.closest?.("#answer, [id^=next-]") || (isField(event.target) && !isAnswer)) return;
  event.preventDefault();
  const files = [...event.clipboardData.files];
  const text = event.clipboardData.getData("text/plain");
  if (text.trim()) take(text, { isUnsure: true });
  else if (files.length) take(files);
});

document.addEventListener("dragover", (event) => { if (event.dataTransfer.types.includes("Files")) event.preventDefault(); });
document.addEventListener("drop", async (event) => {
  const files = [...event.dataTransfer.files];
  if (!files.length) return;
  event.preventDefault();
  if (byId("take")) await take(files);
  else if (byId("task-form")) for (const file of files) await attach(file);
  else say("No request waits for an answer at the moment.", true);
});

document.addEventListener("visibilitychange", () => { if (!document.hidden && isOn("auto")) paste({ isAsked: false }); });
window.addEventListener("focus", () => { if (isOn("auto")) paste({ isAsked: false }); });

// --- begin --------------------------------------------------------------------------------------

async function attach(file) {
  // A browser tells a file's name and text, not its folder: the server looks for the same file.
  const response = await fetch(`/find?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
  const text = await response.text();
  if (!response.ok) { byId("said").innerHTML = text; return; }
  const item = document.createElement("li");
  const label = document.createElement("label");
  const box = Object.assign(document.createElement("input"), { type: "checkbox", name: "attach", value: text, checked: true });
  label.append(box, ` ${text}`);
  item.append(label);
  byId("attached").append(item);
  htmx.trigger(byId("task"), "change");
}

// --- leave out, and attach, while a request waits -----------------------------------------------

async function change(box) {
  const [action, field] = box.checked && !("left" in box.dataset) ? ["say", "attach"] : ["leave", "path"];
  const body = new URLSearchParams({ [field]: box.dataset.part });
  const response = await fetch(`/s/${session()}/${action}`, { method: "POST", body });
  byId("said").innerHTML = await response.text();
  if (!response.ok) box.checked = !box.checked;
}

// What the server lists is what is sent: the tree goes by it.
function tick() {
  const held = new Set();
  for (const box of document.querySelectorAll("#parts > ul input")) {
    box.checked = box.hasAttribute("checked");
    box.disabled = "asked" in box.dataset;
    if (box.checked) held.add(box.dataset.part);
  }
  for (const box of document.querySelectorAll("#tree input[data-part]")) box.checked = held.has(box.dataset.part);
}

// --- clicks -------------------------------------------------------------------------------------

document.addEventListener("click", async (event) => {
  if (event.target.closest("#commit > summary")) {  // the form is there at once, and stays: this leads to it
    event.preventDefault();
    byId("commit").open = true;
    byId("commit").querySelector("textarea, input, button").focus();
  }
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.copy) copy(button);
  else if (button.id === "paste") paste({ isAsked: true });
  else if (button.id === "apply") take(byId("answer").value, {});
  else if (button.id === "apply-plan") applyPlan(button);
  else if (button.id === "drop-plan") endReview("drop");
  else if (button.id === "hide") hide();
  else if (button.dataset.open) show(byId(button.dataset.open));
  else if ("close" in button.dataset) button.closest("dialog").close();
  else if (button.dataset.text) {
    try { byId(button.dataset.into).textContent = await textOf(button.dataset.text); }
    catch (fault) { say(fault.message, true); }
  }
});

document.addEventListener("change", (event) => {
  const box = event.target;
  if (box.dataset.part) change(box);
  if (box.dataset.leaveOut) {
    // The choice is made anew without it, or with it.
    const form = byId("task-form");
    form.querySelectorAll("input[name=leave_out]").forEach((each) => { if (each.value === box.dataset.leaveOut) each.remove(); });
    if (!box.checked) {
      const field = Object.assign(document.createElement("input"), { type: "hidden", name: "leave_out", value: box.dataset.leaveOut });
      byId("choice").append(field);
    }
  }
  // What goes along depends on these, too.
  if (byId("task") && (box.dataset.leaveOut || ["attach", "check", "wants", "guide"].includes(box.name))) htmx.trigger(byId("task"), "change");
  // A cookie, because another page of this person may have another port.
  if (["auto", "review"].includes(box.id)) document.cookie = `codingagent_${box.id}=${box.checked ? 1 : ""}; path=/; max-age=31536000; samesite=strict`;
});

// A field is emptied when its words are taken, and not before.
document.addEventListener("htmx:after:request", ({ detail }) => {
  const form = detail.ctx.sourceElement.closest("form[data-clear]");
  if (form && detail.ctx.response?.raw.ok) {
    form.reset();
    for (const each of form.elements) did.delete(each.id);
  }
});

// --- what a person did --------------------------------------------------------------------------

// By its id: an element that is drawn anew, or comes back in a later state, is as the person left it.
const did = new Map();
const FIELDS = "#main :is(textarea, input)[id]:not([type=hidden], [data-part], [data-leave-out])";
let focused = null;
let isAtEnd = true;

function note() {
  for (const each of document.querySelectorAll("#main details[id]")) did.set(each.id, { each, isOpen: each.open });
  for (const each of document.querySelectorAll(FIELDS)) {
    const { value, checked, defaultValue, defaultChecked } = each;
    if (value !== defaultValue || checked !== defaultChecked) did.set(each.id, { each, value, checked });
    else did.delete(each.id);
  }
  for (const each of document.querySelectorAll("#main [data-of]:not(:empty)")) did.set(each.id, { each, of: each.dataset.of });
  const at = document.activeElement;
  const id = at?.matches("summary") ? at.parentElement.id : at?.matches("textarea, input") && at.id;
  if (id && byId("main")?.contains(at)) focused = { id, from: at.selectionStart, to: at.selectionEnd };
  const output = byId("output");
  isAtEnd = !output || output.scrollTop + output.clientHeight > output.scrollHeight - 20;
}

function redo() {
  for (const [id, { each, isOpen, value, checked, of }] of did) {
    const now = byId(id);
    if (!now) continue;
    did.delete(id);
    if (now.matches("details")) { if (now !== each && now.open !== isOpen) now.querySelector("summary").click(); }
    else if (of !== undefined) { if (now === each && now.dataset.of !== of) showAnew(now); }
    else if (now.type === "checkbox") now.checked = checked;
    else if (now.value === now.defaultValue) now.value = value;
  }
  const lost = focused && document.activeElement === document.body && byId(focused.id);
  if (!lost) return;
  (lost.matches("details") ? lost.querySelector("summary") : lost).focus({ preventScroll: true });
  if (Number.isInteger(focused.from)) lost.setSelectionRange(focused.from, focused.to);
}

// What it was made of has changed.
async function showAnew(each) {
  if (each.matches("pre")) each.textContent = await textOf(each.dataset.from);
  else if (each.dataset.from) htmx.ajax("GET", each.dataset.from, { target: each, swap: "innerHTML" });
  else each.textContent = each.dataset.late;
}

// Who looks elsewhere is not brought back.
document.addEventListener("pointerdown", () => { focused = null; });
document.addEventListener("htmx:before:swap", note);
document.addEventListener("htmx:after:swap", redo);

// What a click brings may be out of sight: what comes first is shown.
let step = "";

document.addEventListener("htmx:before:request", ({ detail }) => {
  const form = detail.ctx.sourceElement.closest("#now form");
  if (form && !(form.closest("[aria-labelledby=say]") && byId("send"))) step = byId("now").dataset.step;
});

// --- what changes -------------------------------------------------------------------------------

// A key or a click that was meant for something else must not answer: the buttons wake up later.
const WAKE_MS = 700;

function show(dialog) {
  if (!dialog || dialog.open) return;
  dialog.querySelectorAll("button:not([data-close])").forEach((each) => { each.disabled = true; });
  dialog.showModal();
  byId("approval-title").focus();
  const wake = () => dialog.querySelectorAll("button[disabled]").forEach((each) => { each.disabled = false; });
  setTimeout(wake, WAKE_MS);
}

let shown = "";

function look() {
  const now = byId("now");
  if (now) document.title = now.dataset.title;
  if (now && step && step !== now.dataset.step) { step = ""; now.scrollIntoView(); }
  for (const name of ["auto", "review"]) if (byId(name)) byId(name).checked = document.cookie.split("; ").includes(`codingagent_${name}=1`);
  mayRead.then((may) => { if (!may) byId("auto")?.closest("label").remove(); });
  const dialog = byId("approval");
  if (dialog && dialog.dataset.question !== shown) {
    shown = dialog.dataset.question;
    if (dialog.open) dialog.close();
    show(dialog);
  }
  if (!dialog) shown = "";
  tick();
  const output = byId("output");
  if (output && isAtEnd) output.scrollTop = output.scrollHeight;
}

setInterval(() => {
  for (const each of document.querySelectorAll("[data-since]")) {
    const passed = Math.max(Date.now() - Date.parse(each.dataset.since), 0);
    each.textContent = `${Math.round(passed / 1000)} s`;
  }
}, 500);

document.addEventListener("htmx:sse:after:message", look);
document.addEventListener("htmx:after:swap", tick);
document.addEventListener("DOMContentLoaded", () => {
  if (isOver) end("This tab has no key to the page.");
  else load();
});
