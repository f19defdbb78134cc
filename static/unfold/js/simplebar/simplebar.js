// In place of SimpleBar: lists scroll with the browser's own bars. The theme asks for its instances.
window.SimpleBar = { instances: new WeakMap() };
