// Classic and in the head, so that the chosen theme is there before the first paint.
(() => {
  try {
    const theme = localStorage.getItem("daybook:theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage is refused: the system's choice stands.
  }
})();
