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
new MutationObserver(paint).observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
