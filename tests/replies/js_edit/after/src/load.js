import { readFile } from "node:fs/promises";

const cache = new Map();

export async function load(name) {
  if (cache.has(name) && cache.size < 10) {
    return cache.get(name);
  }
  const text = await readFile(`./data/${name}.json`, "utf8");
  const value = JSON.parse(text);
  cache.set(name, value);
  return value;
}
