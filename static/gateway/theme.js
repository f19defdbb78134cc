// A classic script in the head, so that the theme applies before the first paint. Also sets the browser's theme colour.
(() => {
  const root = document.documentElement;
  const bars = [...document.querySelectorAll("meta[name=theme-color]")];
  const [light, dark] = bars.map((bar) => bar.content);
  const follow = () => {
    const { theme } = root.dataset;
    [bars[0].content, bars[1].content] = theme ? Array(2).fill(theme === "dark" ? dark : light) : [light, dark];
  };
  new MutationObserver(follow).observe(root, { attributeFilter: ["data-theme"] });
  try {
    const theme = localStorage.getItem("daybook:theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch {
    // Storage is not allowed: use the system's theme.
  }
})();
