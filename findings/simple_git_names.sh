#!/bin/sh
# simple-git 4.0.2 (npm): names of files in `diffSummary` and `status`.
#
# Its types: each file of a summary has its name in `file`, each list of a status holds paths.
# Expected: names as they are on disk.
# Seen: `diffSummary` gives a file of a renamed folder the name "part/{a => b}/x.txt", with neither name beside it, and
# `größe.txt` in git's quotes and octal numbers, though `status` gives that one as it is. A name that begins with a blank
# loses it in both. What looks for these files, keeps a copy of them or takes one back finds none, or another one. Only
# `diffSummary(["--name-status"])` parts the two names of a rename.
#
# Ends with 0 while that is so, else with 1. Needs git.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
npm install --silent --no-audit --no-fund simple-git@4.0.2 >/dev/null
cat >look.mjs <<'J'
import fs from "node:fs";
import { simpleGit } from "simple-git";

fs.mkdirSync("repository/part/a", { recursive: true });
const git = simpleGit("repository");
await git.init();
await git.addConfig("user.name", "Author");
await git.addConfig("user.email", "a@example.org");
for (const name of ["part/a/x.txt", "größe.txt", " x.txt"]) fs.writeFileSync(`repository/${name}`, "one\n");
await git.add(".").commit("m");

for (const name of ["größe.txt", " x.txt"]) fs.writeFileSync(`repository/${name}`, "two\n");
const status = (await git.status()).modified;
fs.renameSync("repository/part/a", "repository/part/b");
const summary = (await git.add(".").diffSummary(["--cached"])).files.map((file) => file.file);

const seen = JSON.stringify({ summary, status });
const expected = JSON.stringify({
  summary: ["x.txt", '"gr\\303\\266\\303\\237e.txt"', "part/{a => b}/x.txt"],
  status: ["x.txt", "größe.txt"],
});
console.log(`${seen}\n${expected}`);
process.exit(seen === expected ? 0 : 1);
J
node look.mjs
