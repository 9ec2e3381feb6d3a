'use strict';

(() => {
  const table = document.getElementById('prices');
  if (!table) return;

  const body = table.tBodies[0];
  const headers = [...table.tHead.rows[0].cells];
  const collator = new Intl.Collator(document.documentElement.lang || undefined, { numeric: true });

  const valueOf = {
    text: (cell) => cell.textContent.trim(),
    number: (cell) => Number(cell.dataset.value ?? cell.textContent.replace(/[^\d.-]/g, '')),
    date: (cell) => Date.parse(cell.querySelector('time')?.dateTime ?? cell.textContent),
  };

  const compare = {
    text: (a, b) => collator.compare(a, b),
    number: (a, b) => a - b,
    date: (a, b) => a - b,
  };

  function sortBy(index) {
    const th = headers[index];
    const type = th.dataset.type in compare ? th.dataset.type : 'text';
    const direction = th.getAttribute('aria-sort') === 'ascending' ? -1 : 1;

    const rows = [...body.rows].map((row) => ({ row, value: valueOf[type](row.cells[index]) }));
    rows.sort((a, b) => direction * compare[type](a.value, b.value));
    body.append(...rows.map(({ row }) => row));

    for (const other of headers) other.removeAttribute('aria-sort');
    th.setAttribute('aria-sort', direction === 1 ? 'ascending' : 'descending');
  }

  headers.forEach((th, index) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...th.childNodes);
    th.append(button);
    button.addEventListener('click', () => sortBy(index));
  });
})();
