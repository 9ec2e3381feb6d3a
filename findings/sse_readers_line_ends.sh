#!/bin/sh
# @azure/core-sse 2.3.0 and @microsoft/fetch-event-source 2.0.1: server-sent events whose data begins with a line end,
# as a streamed token that is one, and an event without data.
#
# HTML (9.2.6): each `data` line is appended with a line end behind it, and only the last one is taken off again; a
# block without data is no event, and its name is forgotten.
# Expected: "\n", "\ntwo", and an event "message" with "text", as eventsource-parser 3.1.1 gives.
# Seen: both leave out the first line end, so that lines of streamed code run together. azure's gives the next event the
# name of the block that has no data; the other gives an event without data for it.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund \
  @azure/core-sse@2.3.0 @microsoft/fetch-event-source@2.0.1 eventsource-parser@3.1.1 >/dev/null
cat >look.mjs <<'J'
import { createSseStream } from "@azure/core-sse";
import { getLines, getMessages } from "@microsoft/fetch-event-source/lib/cjs/parse.js";
import { createParser } from "eventsource-parser";

const readers = {
  async right(text) {
    const seen = [];
    createParser({ onEvent: (event) => seen.push([event.event ?? "message", event.data]) }).feed(text);
    return seen;
  },
  async azure(text) {
    const seen = [];
    const stream = createSseStream(new Blob([text]).stream());
    for await (const event of stream) seen.push([event.event || "message", event.data]);
    return seen;
  },
  async fetch(text) {
    const seen = [];
    const push = (event) => seen.push([event.event || "message", event.data]);
    const take = getLines(getMessages(() => {}, () => {}, push));
    take(new TextEncoder().encode(text));
    return seen;
  },
};
const rows = [
  ["data:\ndata:\n\n", [["message", "\n"]], [["message", ""]], [["message", ""]]],
  ["data:\ndata: two\n\n", [["message", "\ntwo"]], [["message", "two"]], [["message", "two"]]],
  ["event: ping\n\ndata: text\n\n", [["message", "text"]], [["ping", "text"]], [["ping", ""], ["message", "text"]]],
];
let same = true;
for (const [text, ...expected] of rows) {
  console.log(JSON.stringify(text));
  for (const [index, [name, read]] of Object.entries(readers).entries()) {
    const seen = JSON.stringify(await read(text));
    console.log(`  ${name}: ${seen}`);
    same &&= seen === JSON.stringify(expected[index]);
  }
}
process.exit(same ? 0 : 1);
J
node look.mjs
