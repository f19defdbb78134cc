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

const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const TO_THE_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

// Returns a name for a sentence, so that the direction of its letters does not turn the rest of the sentence around.
export function isolated(name) {
  const plain = name.replaceAll(DIRECTIONS, "");
  return TO_THE_LEFT.test(plain) ? `\u2068${plain}\u2069` : plain;
}

// Returns text such as "1 turn" or "1,200 turns".
export function some(count, one, many = `${one}s`) {
  return `${Number(count).toLocaleString("en")} ${Number(count) === 1 ? one : many}`;
}
