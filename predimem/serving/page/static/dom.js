// Building the page. Text is always text: nothing that a robot sends is read as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element; `props`: `class`, `on` (event -> handler), `style` (property -> value), or attributes. */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function s(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else if (name === "style") for (const [key, to] of Object.entries(value)) element.style.setProperty(key, to);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Sets the text only where it changed, so that a selection in it survives. */
export function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

/** Runs `make(item)` once for each new key and `update(element, item)` always; the order is that of the items. */
export function list(parent, items, key, make, update) {
  const there = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  items.forEach((item, place) => {
    const name = String(key(item));
    let child = there.get(name);
    there.delete(name);
    if (!child) {
      child = make(item);
      child.dataset.key = name;
    }
    if (parent.children[place] !== child) parent.insertBefore(child, parent.children[place] ?? null);
    update?.(child, item);
  });
  for (const child of there.values()) child.remove();
}
