// Images by their addresses. They are fetched, since an <img> sends no key, and the last ones are kept.

import { blob } from "./api.js";

const KEPT = 600;
const kept = new Map(); // address -> promise of a blob's address, the last used last

function load(address) {
  let found = kept.get(address);
  kept.delete(address);
  if (!found) {
    found = blob(address).then((data) => URL.createObjectURL(data));
    found.catch(() => kept.delete(address));
  }
  kept.set(address, found);
  if (kept.size > KEPT) {
    const [oldest, promise] = kept.entries().next().value;
    kept.delete(oldest);
    promise.then(URL.revokeObjectURL, () => {});
  }
  return found;
}

/** Shows `address` in an <img>; until it is there the last image stays. */
export async function show(image, address) {
  if (image.dataset.address === address) return;
  image.dataset.address = address;
  try {
    const local = await load(address);
    if (image.dataset.address !== address) return;
    image.src = local;
    image.classList.remove("missing");
  } catch {
    if (image.dataset.address !== address) return;
    image.dataset.address = "";
    if (!image.src) image.classList.add("missing");
  }
}

/** Has it ready for `show`. */
export function prepare(address) {
  load(address).catch(() => {});
}
