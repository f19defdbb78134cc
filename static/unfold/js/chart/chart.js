// Replaces Chart.js, 69 kB on each page: the server draws our charts.
