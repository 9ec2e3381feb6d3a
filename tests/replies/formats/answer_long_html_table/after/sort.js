document.querySelectorAll('table#prices').forEach((table) => {
  const tbody = table.tBodies[0];
  const heads = [...table.querySelectorAll('thead th')];
  const collator = new Intl.Collator(document.documentElement.lang);

  const read = (cell, type) => {
    if (type === 'number') return Number(cell.dataset.value);
    if (type === 'date') return cell.querySelector('time').getAttribute('datetime');
    return cell.textContent.trim();
  };

  const compare = (a, b) => (typeof a === 'number' ? a - b : collator.compare(a, b));

  const sort = (th, col) => {
    const asc = th.getAttribute('aria-sort') !== 'ascending';
    const rows = [...tbody.rows].sort((r1, r2) => {
      const order = compare(read(r1.cells[col], th.dataset.type), read(r2.cells[col], th.dataset.type));
      return asc ? order : -order;
    });
    tbody.append(...rows);
    heads.forEach((h) => h.removeAttribute('aria-sort'));
    th.setAttribute('aria-sort', asc ? 'ascending' : 'descending');
  };

  heads.forEach((th, col) => {
    th.tabIndex = 0;
    th.style.cursor = 'pointer';
    th.addEventListener('click', () => sort(th, col));
    th.addEventListener('keydown', (e) => {
      if (e.key === 'Enter' || e.key === ' ') {
        e.preventDefault();
        sort(th, col);
      }
    });
  });
});
