// The one tooltip of the page, for what is drawn and has no element of its own.

import { h } from "./dom.js";

let tip;

/** Shows lines beside the pointer, inside the window. */
export function showTip(event, lines) {
  if (!tip) {
    tip = h("div", { class: "tip", role: "tooltip", hidden: true });
    document.body.append(tip);
  }
  tip.replaceChildren(...lines.filter(Boolean));
  tip.hidden = false;
  const { clientWidth, clientHeight } = document.documentElement;
  const box = tip.getBoundingClientRect();
  const x = event.clientX + 14 + box.width > clientWidth ? event.clientX - box.width - 10 : event.clientX + 14;
  const y = event.clientY + 16 + box.height > clientHeight ? event.clientY - box.height - 10 : event.clientY + 16;
  tip.style.transform = `translate(${Math.max(4, x)}px, ${Math.max(4, y)}px)`;
}

export function hideTip() {
  if (tip) tip.hidden = true;
}
