import React from 'react';

interface PagerProps {
  total: number;
  perPage?: number;
  page: number;
  onPage: (page: number) => void;
  labels?: { prev: string; next: string };
}

const range = (a: number, b: number): number[] =>
  Array.from({ length: b - a + 1 }, (_, i) => a + i);

export default function Pager({
  total,
  perPage = 10,
  page,
  onPage,
  labels = { prev: '«', next: '»' },
}: PagerProps) {
  const pages = Math.ceil(total / perPage);
  if (pages < 2) return null;
  const near = range(Math.max(1, page - 2), Math.min(pages, page + 2));
  return (
    <nav aria-label="Seiten">
      <button disabled={page <= 1} onClick={() => onPage(page - 1)}>{labels.prev}</button>
      {near.map((n) => (
        <button key={n} aria-current={n === page ? 'page' : undefined} onClick={() => onPage(n)}>
          {n}
        </button>
      ))}
      <button disabled={page >= pages} onClick={() => onPage(page + 1)}>{labels.next}</button>
      <>{` ${page} / ${pages} `}&hellip;</>
    </nav>
  );
}
