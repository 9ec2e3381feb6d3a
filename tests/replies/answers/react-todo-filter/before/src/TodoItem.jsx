export function TodoItem({ id, text, done, dispatch }) {
  return (
    <li className={done ? 'todo done' : 'todo'}>
      <label>
        <input type="checkbox" checked={done} onChange={() => dispatch({ type: 'toggle', id })} />
        <span>{text}</span>
      </label>
      <button
        type="button"
        aria-label={`Remove “${text}”`}
        onClick={() => dispatch({ type: 'remove', id })}
      >
        &times;
      </button>
    </li>
  );
}
