"use strict";
// Boxes show and hide a series in all figures; a pointer over a figure reads its curves.
for (const box of document.querySelectorAll(".legend input")) {
  box.addEventListener("change", () => {
    for (const group of document.querySelectorAll("g.series")) {
      if (group.dataset.who === box.value) group.style.display = box.checked ? "" : "none";
    }
  });
}
for (const figure of document.querySelectorAll("figure.curves")) {
  const svg = figure.querySelector("svg");
  const tip = figure.querySelector(".tip");
  const cursor = figure.querySelector(".cursor");
  const facts = JSON.parse(figure.querySelector("script").textContent);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * facts.width;
    const step = ((x - facts.left) / (facts.right - facts.left)) * facts.last;
    const lines = [];
    let place = 0;
    for (const group of svg.querySelectorAll("g.series")) {
      if (group.style.display === "none") continue;
      const one = facts.series[group.dataset.who];
      let near = 0;
      one.steps.forEach((s, k) => {
        if (Math.abs(s - step) < Math.abs(one.steps[near] - step)) near = k;
      });
      place = one.steps[near];
      const [mean, low, high] = [one.mean, one.low, one.high].map((v) => v[near].toLocaleString("en"));
      lines.push(`${group.dataset.who}: ${mean} (${low} to ${high})`);
    }
    if (!lines.length) return;
    tip.textContent = [`${place.toLocaleString("en")} ${facts.across}`, ...lines].join("\n");
    const at = facts.left + (place / facts.last) * (facts.right - facts.left);
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    tip.style.visibility = cursor.style.visibility = "visible";
  });
  svg.addEventListener("pointerleave", () => {
    tip.style.visibility = cursor.style.visibility = "hidden";
  });
}
