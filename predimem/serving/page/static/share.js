// A link to a step, and the episode as a file.

import { blob } from "./api.js";
import { h, text } from "./dom.js";

/** address(): the hash of what is linked to. */
export function linkButton(address) {
  const button = h("button", { class: "act", title: "A link that opens the episode at this step" }, "Copy link to this step");
  button.addEventListener("click", async () => {
    const link = new URL(address(), location.href).href;
    const done = await copy(link);
    if (!done) prompt("The link to this step:", link);
    text(button, done ? "Link copied" : "Copy link to this step");
    setTimeout(() => text(button, "Copy link to this step"), 2000);
  });
  return button;
}

/** Without TLS, and from another machine, browsers have no clipboard API. */
async function copy(words) {
  try {
    await navigator.clipboard.writeText(words);
    return true;
  } catch {
    const field = h("textarea", { class: "offscreen" });
    field.value = words;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

/** A button, and what it says where there is no file. */
export function recordingButton(id) {
  const said = h("span", { class: "error", role: "status" });
  const button = h("button", { class: "act", title: "Images, subtasks, state, actions and latencies for the Rerun viewer (rerun.io)" }, "Download .rrd");
  button.addEventListener("click", async () => {
    button.disabled = true;
    text(button, "Writing the file …");
    text(said, "");
    try {
      const file = await blob(`/page/past/${encodeURIComponent(id)}.rrd`, 150000);
      const local = URL.createObjectURL(file);
      h("a", { href: local, download: `${id.replace(/[^\w.-]+/g, "_")}.rrd` }).click();
      setTimeout(() => URL.revokeObjectURL(local), 60000);
    } catch (error) {
      text(said, error.message || "there is no file");
    }
    button.disabled = false;
    text(button, "Download .rrd");
  });
  return h("span", { class: "with-note" }, button, said);
}
