// What each GPU did, as a bar of its span.

const PARTS = [
  ["compute", "computing", "compute_ns"],
  ["communication", "communication that nothing hides", "exposed_communication_ns"],
  ["copies", "copies that nothing hides", "exposed_copies_ns"],
  ["idle", "idle", "idle_ns"],
];

function overview(data) {
  const whole = element("div");
  whole.append(element("h2", "", "What the GPUs did"));
  if (data.gpus.length === 0) {
    whole.append(element("p", "", "The trace has no operation of a GPU."));
    return whole;
  }
  const legend = element("div", "legend");
  for (const [part, title] of PARTS) {
    const entry = element("span");
    entry.append(element("i", part), document.createTextNode(title));
    legend.append(entry);
  }
  whole.append(legend);
  for (const gpu of data.gpus) {
    const share = (ns) => (gpu.span_ns > 0 ? (100 * ns) / gpu.span_ns : 0);
    const row = element("div", "gpu");
    const label = element("div", "label");
    label.append(
      element("b", "", "GPU " + gpu.gpu + (gpu.name ? " " + gpu.name : "")),
      element("span", "", "busy " + shown("percent", share(gpu.busy_ns)) + " of " + duration(gpu.span_ns)),
      element("span", "", digits(gpu.operations, 0) + " operations"),
    );
    if (gpu.longest_ns > 0) {
      label.append(element("span", "", "longest idle " + duration(gpu.longest_ns) + ", before " + gpu.longest_before));
    }
    const stack = element("div", "stack");
    stack.setAttribute("role", "img");
    stack.setAttribute("aria-label", PARTS.map(([, title, key]) => title + " " + shown("percent", share(gpu[key]))).join(", "));
    for (const [part, title, key] of PARTS) {
      const piece = element("div", part);
      piece.style.width = share(gpu[key]) + "%";
      piece.title = title + ": " + duration(gpu[key]) + ", " + shown("percent", share(gpu[key]));
      stack.append(piece);
    }
    row.append(label, stack);
    whole.append(row);
  }
  return whole;
}
