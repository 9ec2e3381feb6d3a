export const FILTERS = ['all', 'open', 'done'];

const LABELS = { all: 'All', open: 'Open', done: 'Done' };

export function FilterBar({ current, onChange }) {
  return (
    <div className="filter-bar" role="group" aria-label="Filter todos">
      {FILTERS.map((name) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === current}
          onClick={() => onChange(name)}
        >
          {LABELS[name]}
        </button>
      ))}
    </div>
  );
}
