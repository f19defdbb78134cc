// Replaces SimpleBar: lists scroll with the browser's own scrollbars. The theme reads its instances.
window.SimpleBar = { instances: new WeakMap() };
