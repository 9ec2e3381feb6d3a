import { useEffect, useReducer } from 'react';
import { FILTERS, FilterBar, useHashFilter } from './FilterBar.jsx';
import { TodoItem } from './TodoItem.jsx';
import './app.css';

const initial = () => JSON.parse(localStorage.getItem('todos') ?? '[]');

function reducer(todos, action) {
  switch (action.type) {
    case 'add':
      return [...todos, { id: crypto.randomUUID(), text: action.text, done: false }];
    case 'toggle':
      return todos.map((t) => (t.id === action.id ? { ...t, done: !t.done } : t));
    case 'remove':
      return todos.filter((t) => t.id !== action.id);
    default:
      throw new Error(`unknown action: ${action.type}`);
  }
}

export default function App() {
  const [todos, dispatch] = useReducer(reducer, null, initial);
  const filter = useHashFilter();
  const visible = todos.filter(FILTERS[filter].test);
  const left = todos.filter((t) => !t.done).length;

  useEffect(() => {
    localStorage.setItem('todos', JSON.stringify(todos));
  }, [todos]);

  const submit = (e) => {
    e.preventDefault();
    const text = e.target.elements.text.value.trim();
    if (text) dispatch({ type: 'add', text });
    e.target.reset();
  };

  return (
    <main className="app">
      <h1>Todos &mdash; heute ✅</h1>
      <form onSubmit={submit}>
        <input name="text" placeholder="What&rsquo;s next?" autoFocus />
        <button type="submit">Add&nbsp;&raquo;</button>
      </form>
      <FilterBar filter={filter} />
      <ul>
        {visible.map((todo) => (
          <TodoItem key={todo.id} {...todo} dispatch={dispatch} />
        ))}
      </ul>
      {todos.length > 0 && (
        <footer>
          {left} {left === 1 ? 'item' : 'items'} left
        </footer>
      )}
    </main>
  );
}
