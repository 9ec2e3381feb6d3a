import React, { useState } from 'react';
import Pager from './Pager';

export function List({ items, render = (x) => <li key={x.id}>{x.name}</li> }) {
  const [page, setPage] = useState(1);
  const shown = items.slice((page - 1) * 10, page * 10);
  return (
    <section>
      {shown.length ? <ul>{shown.map(render)}</ul> : <p>Nothing &lt;yet&gt;</p>}
      <Pager total={items.length} page={page} onPage={setPage} />
    </section>
  );
}
