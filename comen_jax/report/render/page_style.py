"""Style sheet (CSS) of the page."""

from comen_jax.report.palette import DARK, LIGHT, Palette


def _colours(palette: Palette) -> str:
  return "".join(f"--{n}:{v};" for n, v in palette._asdict().items())


STYLE = (
  f"""
:root {{ color-scheme: light dark; {_colours(LIGHT)} }}
@media screen and (prefers-color-scheme: dark) {{
  :root {{ {_colours(DARK)} }}
}}
"""
  + """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-padding-top: 1rem; }
body {
  margin: 0 auto; padding: 2.5rem 1rem 5rem; max-width: 62rem;
  background: var(--background); color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans",
    "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: break-word;
}
a { color: var(--accent); text-underline-offset: .15em; }
h1, h2 { line-height: 1.25; text-wrap: balance; }
h1 { margin: 0 0 1rem; font-size: 1.9rem; letter-spacing: -.01em; }
h2 {
  margin: 0 0 1rem; padding-top: 1.25rem; font-size: 1.35rem;
  border-top: 1px solid var(--line);
}
h2 a { color: inherit; text-decoration: none; }
h2 a:hover { text-decoration: underline; }
p { margin: 0 0 1rem; max-width: 44rem; }
header > p { color: var(--muted); }
.headline {
  margin: 0 0 1.25rem; padding: .1rem 0 .1rem 1rem;
  border-left: .25rem solid var(--accent);
}
.headline h2 { margin: 0 0 .35rem; padding: 0; border: 0; font-size: 1.1rem; }
.headline p { margin: 0 0 .35rem; }
section { margin-top: 3rem; }

nav { margin: 1.5rem 0 0; font-size: .95rem; }
nav ol { margin: 0; padding: 0; list-style: none; }
nav li { margin: .2rem 0; }
nav a { text-decoration: none; }
nav a:hover { text-decoration: underline; }

figure { margin: 1.75rem 0 2.25rem; }
figcaption { font-size: .9rem; line-height: 1.45; max-width: 44rem; }
.table figcaption { margin-bottom: .5rem; font-weight: 600; }
.picture figcaption { margin-top: .5rem; color: var(--muted); }
main { counter-reset: table figure; }
.table figcaption::before {
  counter-increment: table; content: "Table " counter(table) ". ";
  color: var(--muted);
}
.picture figcaption::before {
  counter-increment: figure; content: "Figure " counter(figure) ". ";
  color: var(--ink); font-weight: 600;
}
/* Panels stand side by side where there is room, else below each other. */
.panels { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; }
.panels label { max-width: 100%; }
.scroll { display: block; overflow-x: auto; max-width: 100%; }
/* A shadow at the right edge, hidden at the end of the table. */
.table .scroll {
  background:
    linear-gradient(to left, var(--background) 50%, transparent)
      right / 3rem 100% no-repeat local,
    linear-gradient(to left, var(--line), transparent)
      right / 1rem 100% no-repeat scroll;
}
.scroll:focus-visible, input:focus-visible + .scroll {
  outline: 2px solid var(--accent); outline-offset: 2px;
}

table {
  border-collapse: collapse; min-width: 100%; font-size: .9rem;
  line-height: 1.4; border-bottom: 1px solid var(--ink);
}
th, td { padding: .35rem .6rem; text-align: left; vertical-align: top; }
thead th {
  border-top: 1px solid var(--ink); border-bottom: 1px solid var(--ink);
  background: var(--raised); vertical-align: bottom; white-space: normal;
}
tbody th { min-width: 9rem; font-weight: 400; }
tbody tr + tr > * { border-top: 1px solid var(--line); }
tbody tr:hover > * { background: var(--raised); }
.numeric {
  text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums;
}
thead .numeric { white-space: normal; }
.flag { white-space: nowrap; }
/* A path would shrink to a column of single syllables. */
.path { min-width: 16rem; }
.muted { color: var(--muted); }
tbody .bold { font-weight: 650; }
.group th {
  padding-top: .8rem; font-weight: 600; font-size: .85rem;
  color: var(--muted);
}
.group span { position: sticky; left: .6rem; }
/* The name of a row stays in view while the rest scrolls. */
th:first-child:not([colspan]) {
  position: sticky; left: 0; z-index: 1; background: var(--background);
}
thead th:first-child:not([colspan]) { background: var(--raised); z-index: 2; }
.long { max-height: 36rem; overflow-y: auto; }
.long thead th {
  position: sticky; top: 0; z-index: 1; border-bottom: 0;
  /* A collapsed border would scroll away. */
  box-shadow: inset 0 1px var(--ink), inset 0 -1px var(--ink);
}
/* Rows fade out at the bottom edge while there are more below. */
.long::after {
  content: ""; display: block; position: sticky; bottom: 0; left: 0;
  z-index: 3; height: 1.75rem;
  background: linear-gradient(transparent, var(--background));
}
.note {
  margin: .4rem 0 0; font-size: .85rem; line-height: 1.45; color: var(--muted);
}

img { display: block; max-width: 100%; height: auto; }
label { display: block; cursor: zoom-in; }
input { position: absolute; opacity: 0; pointer-events: none; }
input:checked + .scroll {
  position: fixed; inset: 0; z-index: 9; overflow: auto; padding: 1rem;
  cursor: zoom-out; background: var(--background);
}
input:checked + .scroll img {
  width: auto; max-width: max(100%, 60rem); margin: 0 auto;
}

@media (max-width: 40rem) {
  body { padding-top: 1.5rem; }
  h1 { font-size: 1.5rem; }
  th, td { padding: .35rem .5rem; }
  tbody th { min-width: 6rem; max-width: 9.5rem; }
}
@media (min-width: 75rem) {
  body {
    display: grid; grid-template-columns: 12.5rem minmax(0, 60rem);
    column-gap: 2.5rem; max-width: 77.5rem;
  }
  header, main { grid-column: 2; }
  nav {
    grid-column: 1; grid-row: 1 / span 2; position: sticky; top: 2.5rem;
    align-self: start; max-height: calc(100vh - 5rem); overflow-y: auto;
    margin-top: .4rem; padding-right: 1rem; font-size: .875rem;
  }
  nav li { margin: .35rem 0; line-height: 1.35; }
}
@media print {
  body { padding: 0; max-width: none; font-size: 10pt; display: block; }
  nav, input { display: none; }
  .scroll, .long { overflow: visible; max-height: none; }
  .table .scroll { background: none; }
  .long::after { display: none; }
  table { font-size: 8pt; }
  th, td { padding: .2rem .4rem; }
  tbody th { min-width: 0; }
  figure { break-inside: avoid; }
  h2 { break-after: avoid; }
  a { color: inherit; text-decoration: none; }
}
"""
)
