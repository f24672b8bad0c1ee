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
