// Parts of a page: elements, nodes of a template, and numbers with their nouns.

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Returns the nodes of HTML that is rendered and escaped by the server.
export function parsed(html) {
  return element("template", { innerHTML: html }).content;
}

// Returns a copy of the first element in a template of the page.
export function fromTemplate(id) {
  return document.getElementById(id).content.cloneNode(true).firstElementChild;
}

// Returns text such as "1 turn" or "1,200 turns".
export function some(count, one, many = `${one}s`) {
  return `${Number(count).toLocaleString("en")} ${Number(count) === 1 ? one : many}`;
}
