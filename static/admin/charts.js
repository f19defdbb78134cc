// The theme draws the charts and reads their colours once, when the page opens. This keeps them true when its switch
// between light and dark is used, and gives axes and legends the colour of small words.
"use strict";

const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function paint() {
  Chart.defaults.color = colourOf("--db-chart-words");
  for (const canvas of document.querySelectorAll("canvas.chart")) {
    const chart = Chart.getChart(canvas);
    if (!chart) continue;
    const given = JSON.parse(canvas.dataset.value).datasets;
    chart.data.datasets.forEach((drawn, place) => {
      drawn.borderColor = drawn.backgroundColor = colourOf(given[place].borderColor.slice("var(".length, -1));
    });
    chart.update("none");
  }
}

paint();
// The charts come after the page. The theme draws those that are there when the page has loaded, which may be between
// their coming and their settling; the others are ours.
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "board") return;
  if (document.readyState !== "complete") {
    addEventListener("load", paint);
    return;
  }
  const first = event.target.querySelector("canvas.chart");
  if (first && !Chart.getChart(first)) renderCharts();
  paint();
});
new MutationObserver(paint).observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
