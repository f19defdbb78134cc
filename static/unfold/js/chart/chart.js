// In place of Chart.js, 69 kB of each page: our charts are drawn by the server.
