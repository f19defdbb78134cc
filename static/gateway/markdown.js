// Markdown while it arrives: a small part of it, as DOM nodes made of text, so nothing that a model says is ever parsed
// as HTML. When the answer is complete the server's rendering takes its place.

const INLINE = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*([^\s*](?:[\s\S]*?[^\s*])?)\*\*|\*([^\s*](?:[^*]*[^\s*])?)\*|!?\[([^\]]*)\]\([^)\s]*\)/g;
const FENCE = /^ {0,3}(```+|~~~+)\s*([\w+#.-]*)/;
const ITEM = /^ {0,3}(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;

// Splits text into blocks, each with its source, so that only what changed is drawn again.
export function blocksOf(text) {
  const blocks = [];
  let open = null;
  let fence = null;
  const close = () => {
    if (open) blocks.push(open);
    open = null;
  };
  for (const line of text.split("\n")) {
    if (fence) {
      if (line.trim().startsWith(fence) && !line.trim().slice(fence.length).replaceAll(fence[0], "")) {
        fence = null;
        close();
      } else open.lines.push(line);
      continue;
    }
    const opening = FENCE.exec(line);
    if (opening) {
      close();
      fence = opening[1];
      open = { kind: "code", language: opening[2], lines: [] };
      continue;
    }
    if (!line.trim()) {
      close();
      continue;
    }
    const heading = HEADING.exec(line);
    const item = ITEM.exec(line);
    const kind = heading ? "heading" : item ? (item[1] ? "ul" : "ol") : line.startsWith(">") ? "quote" : "text";
    if (kind === "heading") {
      close();
      blocks.push({ kind, lines: [heading[2]] });
    } else if (item) {
      if (open?.kind !== kind) {
        close();
        open = { kind, start: item[2], lines: [] };
      }
      open.lines.push(item[3]);
    } else if (open && (open.kind === kind || open.kind === "ul" || open.kind === "ol")) {
      if (open.kind === kind) open.lines.push(line);
      else open.lines[open.lines.length - 1] += "\n" + line.trim();
    } else {
      close();
      open = { kind, lines: [line] };
    }
  }
  close();
  return blocks;
}

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

export function inlineNodes(text) {
  const nodes = [];
  let done = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > done) nodes.push(text.slice(done, match.index));
    if (match[2] !== undefined) nodes.push(element("code", "", match[2].trim()));
    else if (match[3] !== undefined) nodes.push(element("strong", "", ...inlineNodes(match[3])));
    else if (match[4] !== undefined) nodes.push(element("em", "", ...inlineNodes(match[4])));
    else nodes.push(match[5] || "image");
    done = match.index + match[0].length;
  }
  if (done < text.length) nodes.push(text.slice(done));
  return nodes;
}

function draw(block) {
  const { kind, lines } = block;
  if (kind === "code") {
    const bar = element("div", "code__bar", element("span", "", block.language || "text"));
    return element("div", "code", bar, element("pre", "", element("code", "", lines.join("\n"))));
  }
  if (kind === "heading") return element("h3", "", ...inlineNodes(lines[0]));
  if (kind === "quote") {
    const said = lines.map((line) => line.replace(/^>\s?/, "")).join("\n");
    return element("blockquote", "", element("p", "", ...inlineNodes(said)));
  }
  if (kind === "ul" || kind === "ol") {
    const list = element(kind, "", ...lines.map((line) => element("li", "", ...inlineNodes(line))));
    if (kind === "ol" && block.start) list.start = Number(block.start);
    return list;
  }
  return element("p", "", ...inlineNodes(lines.join("\n")));
}

// Draws text into a container; blocks whose source did not change keep their nodes.
export function createProgressive(container) {
  const drawn = [];
  return (text) => {
    const blocks = blocksOf(text);
    blocks.forEach((block, at) => {
      const source = JSON.stringify(block);
      if (drawn[at]?.source === source) return;
      const node = draw(block);
      if (drawn[at]) drawn[at].node.replaceWith(node);
      else container.append(node);
      drawn[at] = { source, node };
    });
    for (const { node } of drawn.splice(blocks.length)) node.remove();
    return drawn.at(-1)?.node ?? null;
  };
}
