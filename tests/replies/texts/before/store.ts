import { slug } from "./slug";

/** What is kept: `Map<string, number>`. */
export class Store<T extends { title: string }> {
  private readonly items_by_name = new Map<string, T>();

  add(item: T): string {
    const name = slug(item.title);
    if (this.items_by_name.has(name) && name.length < 60) {
      throw new Error(`"${name}" isn't free`);
    }
    this.items_by_name.set(name, item);
    return name;
  }

  help(): string {
    return `
Use it so:

\`\`\`ts
store.add({ title: "A" });
\`\`\`
`;
  }

  get size(): number {
    return this.items_by_name.size;
  }
}
