#!/bin/sh
# isomorphic-git 1.44.19, `merge`: two branches that each change one line of a file, without a conflict. Other lines of
# the file hold a lone CR, as recorded progress lines do, or U+2028, as text that was pasted from a page does.
#
# For git a line ends at LF; all other characters belong to their line.
# Expected: both changes, and each other byte as all three versions have it.
# Seen: the characters are gone from the merged file and from its blob, though nobody touched their lines: "two\rthree"
# is "twothree". The merge says that it went well, and its commit is made. git's own merge of the same branches keeps
# them. A CRLF at a line's end stays.
#
# Ends with 0 while that is so, else with 1. Needs git.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
npm install --silent --no-audit --no-fund isomorphic-git@1.44.19 >/dev/null
cat >look.mjs <<'J'
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import git from "isomorphic-git";

const dir = "repository";
const author = { name: "A", email: "a@example.org" };
const base = "one\ntwo\rthree\nfour\u2028five\nsix\r\nseven\n";
const save = async (text) => {
  fs.writeFileSync(`${dir}/a.txt`, text);
  await git.add({ fs, dir, filepath: "a.txt" });
  await git.commit({ fs, dir, message: "m", author });
};

await git.init({ fs, dir, defaultBranch: "main" });
await save(base);
await git.branch({ fs, dir, ref: "other" });
await save(base.replace("one", "ONE"));
await git.checkout({ fs, dir, ref: "other" });
await save(base.replace("seven", "SEVEN"));

const { oid } = await git.merge({ fs, dir, ours: "main", theirs: "other", author });
const { blob } = await git.readBlob({ fs, dir, oid, filepath: "a.txt" });
const merged = Buffer.from(blob).toString();

const run = (...words) => execFileSync("git", words, { cwd: dir, encoding: "utf8" });
const tree = run("merge-tree", "--write-tree", "main^1", "other").split("\n")[0];
const gits = run("cat-file", "blob", `${tree}:a.txt`);

console.log("isomorphic-git:", JSON.stringify(merged));
console.log("git:           ", JSON.stringify(gits));
const right = base.replace("one", "ONE").replace("seven", "SEVEN");
process.exit(gits === right && merged === right.replace(/\r(?!\n)|\u2028/g, "") ? 0 : 1);
J
node look.mjs
