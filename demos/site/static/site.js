// Scenes in frames follow the theme of the page.
function tell() {
  const theme = document.documentElement.dataset.theme;
  for (const frame of document.querySelectorAll("iframe.scene")) frame.contentWindow.postMessage(theme, "*");
}
addEventListener("load", () => {
  for (const frame of document.querySelectorAll("iframe.scene")) frame.addEventListener("load", tell);
  new MutationObserver(tell).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  tell();
});

// The table of messages shows the rows that contain all words of the filter.
addEventListener("DOMContentLoaded", () => {
  const filter = document.getElementById("filter");
  if (!filter) return;
  const rows = [...document.querySelectorAll("table.messages tbody tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((row, k) => { row.hidden = !words.every((word) => texts[k].includes(word)); });
    const shown = rows.filter((row) => !row.hidden).length;
    document.getElementById("found").textContent = words.length ? `${shown} of ${rows.length} messages` : "";
    for (const part of document.querySelectorAll("section section"))
      part.hidden = ![...part.querySelectorAll("tbody tr")].some((row) => !row.hidden);
  });
});
