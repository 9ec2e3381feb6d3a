import { useEffect, useState } from 'react';

export const FILTERS = {
  all: { label: 'All', test: () => true },
  open: { label: 'Open', test: (todo) => !todo.done },
  done: { label: 'Done', test: (todo) => todo.done },
};

const fromHash = () => {
  const name = window.location.hash.slice(1);
  return Object.hasOwn(FILTERS, name) ? name : 'all';
};

/** The name of the selected filter, kept in the URL hash. */
export function useHashFilter() {
  const [filter, setFilter] = useState(fromHash);

  useEffect(() => {
    const update = () => setFilter(fromHash());
    window.addEventListener('hashchange', update);
    return () => window.removeEventListener('hashchange', update);
  }, []);

  return filter;
}

export function FilterBar({ filter }) {
  return (
    <nav className="filters" aria-label="Filter">
      {Object.entries(FILTERS).map(([name, { label }]) => (
        <a key={name} href={`#${name}`} aria-current={name === filter ? 'true' : undefined}>
          {label}
        </a>
      ))}
    </nav>
  );
}
