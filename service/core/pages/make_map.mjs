// Makes static/map.svg, the world map of the dashboard. Its versions are exact, so that the same commands give the
// same bytes. Run from the repository, with Node 20 or later:
//
//   npm install -C /tmp/map world-atlas@2.0.2 i18n-iso-countries@7.14.0
//   npm install -C /tmp/map d3-geo@3.1.2 topojson-client@3.1.0 topojson-simplify@3.0.3
//   node service/core/pages/make_map.mjs /tmp/map > service/core/pages/static/map.svg
//
// Countries are drawn from Natural Earth at 1:110 million, simplified. States that are missing there become circles at
// the middle of their 1:50 million shapes, or at the coordinates below where that has none either. No Antarctica.

import { createRequire } from "node:module";

const load = createRequire(`${process.argv[2]}/package.json`);
const { geoCentroid, geoEqualEarth } = await import(load.resolve("d3-geo"));
const { feature, mergeArcs, transform } = await import(load.resolve("topojson-client"));
const { filter, filterWeight, planarRingArea, presimplify, simplify } = await import(load.resolve("topojson-simplify"));
const iso = load("i18n-iso-countries");

const WIDTH = 1000;
const RADIUS = 3;
const LEAST_AREA = 3.4; // of the triangle that a point makes with the points next to it; otherwise it is left out
const LEAST_SHARE = 0.15; // of a polygon that the triangle needs at most, so that small countries keep their shapes
const WITHOUT_CODE = { Kosovo: "XK", "N. Cyprus": "CY", Somaliland: "SO" };
const WITHOUT_SHAPE = { // longitude, latitude
  BQ: [-68.3, 12.2], BV: [3.4, -54.4], CC: [96.8, -12.2], CX: [105.7, -10.5], GI: [-5.35, 36.14], GP: [-61.5, 16.2],
  MQ: [-61, 14.65], RE: [55.5, -21.1], SJ: [16, 78], TK: [-171.8, -9.2], TV: [179.2, -8.5], UM: [-176.5, 0.2],
  YT: [45.15, -12.8],
};

/** A topology with other coordinates. Neighbours share the points of their border, so that it moves for both. */
function moved(topology, move) {
  return { ...topology, transform: undefined, arcs: topology.arcs.map((arc) => arc.map(move)) };
}

/** The number of an arc, which is ~arc where a polygon uses it the other way around. */
const number = (arc) => Math.max(arc, ~arc);

/** The least area of a triangle to keep, for each arc. */
function leastAreas(topology) {
  const least = topology.arcs.map(() => LEAST_AREA);
  const countries = topology.objects.countries.geometries;
  for (const [outline] of countries.flatMap(({ type, arcs }) => (type === "Polygon" ? [arcs] : arcs))) {
    const ring = feature(topology, { type: "LineString", arcs: outline }).geometry.coordinates;
    const share = LEAST_SHARE * planarRingArea(ring);
    for (const arc of outline.map(number)) least[arc] = Math.min(least[arc], share);
  }
  return least;
}

/** A topology of degrees on the map: whole numbers, fewer points, and no islands that have shrunk to a line. */
function drawn(topology, projection) {
  const degrees = transform(topology.transform);
  const exact = presimplify(moved(topology, (point, index) => projection(degrees(point, index))));
  const least = leastAreas(exact);
  const arcs = exact.arcs.map((arc, index) => arc.filter(([, , area]) => area >= least[index]));
  const whole = presimplify(moved({ ...exact, arcs }, ([x, y]) => [Math.round(x), Math.round(y)]));
  const straight = simplify(whole, Number.MIN_VALUE); // without the points at which a line goes straight on
  return filter(straight, filterWeight(straight));
}

/** The shapes of a topology by ISO 3166-1 alpha-2 code, those of one code merged. */
function shapes(topology) {
  const found = new Map();
  for (const shape of topology.objects.countries.geometries) {
    const code = WITHOUT_CODE[shape.properties.name] ?? iso.numericToAlpha2(shape.id);
    if (code && code !== "AQ") found.set(code, [...(found.get(code) ?? []), shape]);
  }
  return new Map([...found].map(([code, parts]) => [code, mergeArcs(topology, parts)]));
}

/** The step from a point to another in SVG path data: "1-2", with a space before a number that has no minus. */
function step([a, b], [c, d]) {
  return `${c < a ? "" : " "}${c - a}${d < b ? "" : " "}${d - b}`;
}

/** SVG path data of rings: "m3 4-1 2…z". z draws the longest step of a ring and leads to its start. */
function relative(rings) {
  let start = [0, 0];
  return rings.map((ring) => {
    const points = ring.slice(1).filter(([x, y], index) => x !== ring[index][0] || y !== ring[index][1]);
    const steps = points.map((point, index) => step(points.at(index - 1), point));
    const lengths = steps.map(({ length }) => length);
    const longest = lengths.lastIndexOf(Math.max(...lengths));
    const move = step(start, points[longest]).trim();
    start = points[longest];
    return `m${move}${[...steps.slice(longest + 1), ...steps.slice(0, longest)].join("")}z`;
  }).join("");
}

const world = load("world-atlas/countries-110m.json");
// Turned by 11.5 degrees, so that the map is cut in the Bering Strait, where the cut meets no land: since points are
// projected one by one, a shape on both sides would stretch across the map
const projection = geoEqualEarth().rotate([-11.5, 0]).fitWidth(WIDTH, { type: "Sphere" });
const [, top] = projection([0, world.bbox[3]]);
projection.translate([WIDTH / 2, projection.translate()[1] - top]);

const map = drawn(world, projection);
const coarse = shapes(map);
const france = coarse.get("FR").arcs;
const isGuiana = (arcs) => feature(map, { type: "Polygon", arcs }).geometry.coordinates[0][0][0] < 0.4 * WIDTH;
coarse.set("FR", { type: "MultiPolygon", arcs: france.filter((polygon) => !isGuiana(polygon)) });
coarse.set("GF", { type: "MultiPolygon", arcs: france.filter(isGuiana) });

const marks = new Map();
let height = 0;
for (const [code, shape] of coarse) {
  const rings = feature(map, shape).geometry.coordinates.flat();
  height = Math.max(height, ...rings.flat().map(([, y]) => y));
  marks.set(code, `<path id="${code}" d="${relative(rings)}"/>`);
}
const atlas = load("world-atlas/countries-50m.json");
const middles = [...shapes(atlas)].map(([code, shape]) => [code, geoCentroid(feature(atlas, shape))]);
for (const [code, point] of [...middles, ...Object.entries(WITHOUT_SHAPE)]) {
  if (marks.has(code)) continue;
  const [x, y] = projection(point).map(Math.round);
  marks.set(code, `<circle id="${code}" cx="${x}" cy="${y}" r="${RADIUS}"/>`);
}

const isCircle = (code) => marks.get(code).startsWith("<circle");
const codes = [...marks.keys()].sort((a, b) => isCircle(a) - isCircle(b) || (a < b ? -1 : 1)); // circles on top
console.log(`<!--
Countries of the world by ISO 3166-1 alpha-2 code; XK is Kosovo. Equal Earth projection, integer coordinates.
Source: Natural Earth (https://www.naturalearthdata.com), 1:110 million; its terms: public domain.
Read from the npm package world-atlas 2.0.2 (ISC), projected by d3-geo 3.1.2 (ISC),
simplified by topojson-simplify 3.0.3 (ISC). Made by three commands, in the repository:
  npm install -C /tmp/map world-atlas@2.0.2 i18n-iso-countries@7.14.0
  npm install -C /tmp/map d3-geo@3.1.2 topojson-client@3.1.0 topojson-simplify@3.0.3
  node service/core/pages/make_map.mjs /tmp/map > service/core/pages/static/map.svg
-->
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}">
${codes.map((code) => marks.get(code)).join("\n")}
</svg>`);
