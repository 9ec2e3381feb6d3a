import { readFile } from "node:fs/promises";

const cache = new Map();

export async function load(name) {
  if (cache.has(name) && cache.size < 10) {
    return cache.get(name);
  }
  const text = await readFile(`./data/${name}.json`, "utf8");
  return JSON.parse(text);
}
