// Attachments of a message: pictures and files that are chosen, pasted or dropped. Each becomes a content part.

import { element, isolated } from "./parts.js";

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const MOST = 10;
const LARGEST = 10_000_000; // bytes of all attachments
const LONGEST_TEXT = 100_000; // characters of one text file

export class Attachments extends EventTarget {
  constructor(form) {
    super();
    this.list = form.querySelector("#attached");
    this.items = [];
    this.reading = 0; // calls of add that have not finished
    const files = form.querySelector("#files");
    form.querySelector("#attach").addEventListener("click", () => files.click());
    files.addEventListener("change", () => {
      this.add([...files.files]);
      files.value = "";
    });
    form.addEventListener("paste", (event) => {
      if (!event.clipboardData?.files.length || isFormattedText(event.clipboardData)) return;
      event.preventDefault();
      this.add([...event.clipboardData.files]);
    });
    // Anywhere: beside the composer, the browser would open the file in place of the page.
    const dropping = (isDropping) => form.classList.toggle("composer--dropping", isDropping);
    document.addEventListener("dragover", (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      dropping(true);
    });
    document.addEventListener("dragleave", ({ relatedTarget }) => relatedTarget || dropping(false)); // left the window
    document.addEventListener("drop", (event) => {
      dropping(false);
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      this.add([...event.dataTransfer.files]);
    });
  }

  async add(files) {
    this.reading += 1;
    for (const file of files) {
      if (this.items.length >= MOST) {
        this.#trouble(`A message can have at most ${MOST} attachments.`);
        break;
      }
      const refused = this.#refusal(file);
      const read = refused ? { refused } : await itemOf(file);
      if (read.refused) this.#trouble(read.refused);
      else this.items.push(read);
    }
    this.reading -= 1;
    this.#changed();
  }

  // Puts attachments of a message that was taken back before those that were added since.
  putBack(items) {
    if (!items.length) return;
    this.items.unshift(...items);
    this.#changed();
  }

  // Removes and returns the attachments when their message is sent.
  take() {
    const taken = this.items;
    this.items = [];
    this.#show();
    return taken;
  }

  #refusal(file) {
    if (!file.size) return `${isolated(file.name)} is empty, or a folder.`;
    const size = this.items.reduce((sum, item) => sum + item.size, file.size);
    if (size > LARGEST) return `${isolated(file.name)} is too large: attachments may have ${LARGEST / 1e6} MB in total.`;
    return null;
  }

  #changed() {
    this.#show();
    this.dispatchEvent(new CustomEvent("changed"));
  }

  #trouble(words) {
    this.dispatchEvent(new CustomEvent("trouble", { detail: words }));
  }

  #show() {
    show(this.list, this.items);
    for (const [index, entry] of [...this.list.children].entries()) {
      const name = this.items[index].name;
      const remove = element("button", { type: "button", className: "attached__remove", ariaLabel: `Remove ${isolated(name)}`, textContent: "×" });
      remove.addEventListener("click", () => {
        this.items.splice(index, 1);
        this.#changed();
        this.dispatchEvent(new CustomEvent("removed"));
      });
      entry.append(remove);
    }
  }
}

// Renders the attachments as a list: pictures as thumbnails, files by name.
export function show(list, items) {
  list.hidden = !items.length;
  list.replaceChildren(
    ...items.map(({ name, picture }) => {
      const shown = picture ? element("img", { src: picture, alt: name }) : element("span", { className: "attached__file", textContent: isolated(name) });
      return element("li", {}, shown);
    }),
  );
}

// Office programs put a picture of the copied cells or text beside the text.
function isFormattedText(clipboard) {
  return clipboard.types.includes("text/html") && clipboard.getData("text/plain").trim() !== "";
}

// Returns an attachment, or `{refused}` with the reason.
async function itemOf(file) {
  try {
    return await readItem(file);
  } catch {
    return { refused: `${isolated(file.name)} could not be read. It may be damaged, or a folder.` };
  }
}

async function readItem(file) {
  const name = file.name.replaceAll(/[\]\n]/g, " ").slice(0, 200) || "file";
  if (PICTURES.has(file.type)) {
    (await createImageBitmap(file)).close(); // throws if it is damaged
    const url = await dataUrl(file);
    return { name, size: file.size, picture: url, part: { type: "image_url", image_url: { url } } };
  }
  if (file.type === "application/pdf") {
    return { name, size: file.size, part: { type: "file", file: { filename: name, file_data: await dataUrl(file) } } };
  }
  const text = await textOf(file);
  if (text === null) return { refused: `${isolated(file.name)} cannot be attached. Pictures may be PNG, JPEG, GIF or WebP; other files PDF or text in UTF-8.` };
  if (text.length > LONGEST_TEXT) return { refused: `${isolated(file.name)} is too long: a text file may have ${LONGEST_TEXT.toLocaleString("en")} characters.` };
  return { name, size: file.size, part: { type: "text", text: `[File ${name}]\n${text}` } };
}

function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}

// Returns the text of a file, or null if it is not text.
async function textOf(file) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return text.includes("\0") ? null : text;
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}
