export default function App() {
  return <a/>;
}
