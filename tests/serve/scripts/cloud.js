// Draw 200,000 points with the page's own modules; say how much of each drawing is filled, and with how many nodes.
const steps = (seed) => {
  let x = seed;
  return () => (x = (x * 48271) % 2147483647) / 2147483647;
};
const [one, other] = [steps(1), steps(7)];
const xs = Float64Array.from({ length: 200_000 }, () => one() + one() + one());
const ys = xs.map((x) => x + 0.2 * (other() - 0.5));

function filled({ element }) {
  const canvas = element.querySelector("canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) count += data[i] < 110 && data[i + 2] > 150 && data[i + 3] > 110;
  return count / (canvas.width * canvas.height);
}

// Each dot that is drawn by itself costs; cells do not hang on how many points there are.
const strokes = { count: 0 };
for (const name of ["arc", "fillRect"]) {
  const plain = CanvasRenderingContext2D.prototype[name];
  CanvasRenderingContext2D.prototype[name] = function counted(...given) {
    strokes.count += 1;
    return plain.apply(this, given);
  };
}

async function drawn() {
  const [{ scatter }, { lines }] = await Promise.all([import("/page/scatter.js"), import("/page/lines.js")]);
  const cloud = scatter("cloud", { across: "x", up: "y", sets: [{ name: "dot", colour: 0 }] });
  const curve = lines("curve", { curves: [{ name: "y", colour: 0 }] });
  document.getElementById("main").replaceChildren(cloud.element, curve.element);
  cloud.set([{ xs, ys }]);
  curve.set({ xs: xs.map((_, i) => i), head: () => [], curves: [{ values: ys, say: () => [] }] });
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const said = cloud.element.querySelector(".drawing").ariaLabel;
  const nodes = document.querySelectorAll("#main *").length;
  return { filled: [cloud, curve].map(filled), nodes, said, strokes: strokes.count };
}
return drawn();
