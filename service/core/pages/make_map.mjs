// Makes static/map.svg, the world map of the dashboard. Its versions are exact, so that the same command gives the
// same bytes. Run from the repository, with Node 20 or later:
//
//   npm install -C /tmp/map world-atlas@2.0.2 d3-geo@3.1.2 topojson-client@3.1.0 i18n-iso-countries@7.14.0
//   node service/core/pages/make_map.mjs /tmp/map > service/core/pages/static/map.svg
//
// Countries are drawn from Natural Earth at 1:110 million. States that are missing there become circles at the middle
// of their 1:50 million shapes, or at the coordinates below where that has none either. Antarctica is left out.

import { createRequire } from "node:module";

const load = createRequire(`${process.argv[2]}/package.json`);
const { geoCentroid, geoEqualEarth, geoPath } = await import(load.resolve("d3-geo"));
const { feature, merge } = await import(load.resolve("topojson-client"));
const iso = load("i18n-iso-countries");

const WIDTH = 1000;
const RADIUS = 3;
const WITHOUT_CODE = { Kosovo: "XK", "N. Cyprus": "CY", Somaliland: "SO" };
const WITHOUT_SHAPE = { // longitude, latitude
  BQ: [-68.3, 12.2], BV: [3.4, -54.4], CC: [96.8, -12.2], CX: [105.7, -10.5], GI: [-5.35, 36.14], GP: [-61.5, 16.2],
  MQ: [-61, 14.65], RE: [55.5, -21.1], SJ: [16, 78], TK: [-171.8, -9.2], TV: [179.2, -8.5], UM: [-176.5, 0.2],
  YT: [45.15, -12.8],
};

const codeOf = (shape) => WITHOUT_CODE[shape.properties.name] ?? iso.numericToAlpha2(shape.id);

/** The shapes of a topology by ISO 3166-1 alpha-2 code, those of one code merged; French Guiana apart from France. */
function shapes(topology) {
  const found = new Map();
  for (const shape of topology.objects.countries.geometries) {
    const code = codeOf(shape);
    if (code && code !== "AQ") found.set(code, [...(found.get(code) ?? []), shape]);
  }
  const merged = new Map([...found].map(([code, parts]) => [code, merge(topology, parts)]));
  const isGuiana = (polygon) => geoCentroid({ type: "Polygon", coordinates: polygon })[0] < -50;
  const france = merged.get("FR").coordinates;
  merged.set("FR", { type: "MultiPolygon", coordinates: france.filter((polygon) => !isGuiana(polygon)) });
  merged.set("GF", { type: "MultiPolygon", coordinates: france.filter(isGuiana) });
  return merged;
}

/** Whether a line goes straight on at a point, which then need not be named. */
function isPassed(points, index) {
  const [[a, b], [c, d], [e, f]] = points.slice(index - 1, index + 2);
  const [x, y, v, w] = [c - a, d - b, e - c, f - d];
  return x * w === y * v && x * v + y * w > 0;
}

/** SVG path data with whole numbers, each point relative to the one before: "m3 4l-1 2…z". */
function relative(data) {
  const rings = data.split("M").slice(1).map((ring) => {
    const points = ring.replace("Z", "").split("L").map((point) => point.split(",").map(Math.round));
    const distinct = points.filter(([x, y], index) => !index || x !== points[index - 1][0] || y !== points[index - 1][1]);
    return distinct.filter((point, index) => !index || index === distinct.length - 1 || !isPassed(distinct, index));
  });
  const areas = rings.filter((points) => points.length > 2); // the others shrink to a line at this scale
  let [x, y] = [0, 0];
  return (areas.length ? areas : rings).map((points) => {
    const steps = points.map(([a, b]) => {
      const step = `${a - x}${b < y ? "" : " "}${b - y}`;
      [x, y] = [a, b];
      return step;
    });
    [x, y] = points[0]; // z returns to the start of the ring
    return `m${steps[0]}l${steps.slice(1).map((step, index) => (index && step[0] !== "-" ? ` ${step}` : step)).join("")}z`;
  }).join("");
}

const coarse = shapes(load("world-atlas/countries-110m.json"));
const fine = shapes(load("world-atlas/countries-50m.json"));
const world = { type: "GeometryCollection", geometries: [...coarse.values()] };
// Turned by 11 degrees, so that the map is cut in the Bering Strait and Chukotka stays with Russia
const projection = geoEqualEarth().rotate([-11, 0]).fitWidth(WIDTH, { type: "Sphere" });
projection.translate([WIDTH / 2, -geoPath(projection).bounds(world)[0][1] + projection.translate()[1]]);
const path = geoPath(projection);
const height = Math.ceil(path.bounds(world)[1][1]);

const marks = new Map([...coarse].map(([code, shape]) => [code, `<path id="${code}" d="${relative(path(shape))}"/>`]));
for (const [code, point] of [...[...fine].map(([code, shape]) => [code, geoCentroid(shape)]), ...Object.entries(WITHOUT_SHAPE)]) {
  if (marks.has(code)) continue;
  const [x, y] = projection(point).map(Math.round);
  marks.set(code, `<circle id="${code}" cx="${x}" cy="${y}" r="${RADIUS}"/>`);
}

const isCircle = (code) => marks.get(code).startsWith("<circle");
const codes = [...marks.keys()].sort((a, b) => isCircle(a) - isCircle(b) || (a < b ? -1 : 1)); // circles on top
console.log(`<!--
Countries of the world by ISO 3166-1 alpha-2 code; XK is Kosovo. Equal Earth projection, integer coordinates.
Source: Natural Earth (https://www.naturalearthdata.com), 1:110 million; its terms: public domain.
Read from the npm packages world-atlas 2.0.2 (ISC), projected by d3-geo 3.1.2 (ISC).
Made by two commands, in the repository:
  npm install -C /tmp/map world-atlas@2.0.2 d3-geo@3.1.2 topojson-client@3.1.0 i18n-iso-countries@7.14.0
  node service/core/pages/make_map.mjs /tmp/map > service/core/pages/static/map.svg
-->
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}">
${codes.map((code) => marks.get(code)).join("\n")}
</svg>`);
