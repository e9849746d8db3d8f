// The colours of a plot that are not faint, and those of page and type.
const canvas = document.querySelector("#denoising canvas");
const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
const found = new Set();
for (let i = 0; i < data.length; i += 4) {
  if (data[i + 3] > 150) found.add(`${data[i]} ${data[i + 1]} ${data[i + 2]}`);
}
const { backgroundColor, color } = getComputedStyle(document.body);
return [[...found], backgroundColor, color];
