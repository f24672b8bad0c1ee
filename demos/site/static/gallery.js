// The gallery: buttons that choose cards by tag, and previews that play while they are seen.
addEventListener("DOMContentLoaded", () => {
  const bar = document.querySelector(".gallery-filter");
  if (!bar) return;
  const cards = [...document.querySelectorAll(".sd-col")];
  const tags = new Set(cards.flatMap((card) => [...card.classList].filter((name) => name.startsWith("tag-"))));
  const choose = (tag, pressed) => {
    for (const button of bar.children) button.setAttribute("aria-pressed", button === pressed);
    for (const card of cards) card.hidden = Boolean(tag) && !card.classList.contains(tag);
    for (const section of document.querySelectorAll(".bd-article section section"))
      section.hidden = !section.querySelector(".sd-col:not([hidden])");
  };
  for (const tag of ["", ...[...tags].sort()]) {
    const button = document.createElement("button");
    button.textContent = tag ? tag.slice(4) : "all";
    button.setAttribute("aria-pressed", !tag);
    button.addEventListener("click", () => choose(tag, button));
    bar.append(button);
  }
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const play = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries)
      isIntersecting ? target.play().catch(() => {}) : target.pause();
  }, { threshold: 0.5 });
  for (const card of cards.filter((one) => one.classList.contains("moves"))) {
    const film = document.createElement("video");
    Object.assign(film, { className: "preview", muted: true, loop: true, playsInline: true, preload: "none" });
    film.src = card.querySelector("a").getAttribute("href").replace("index.html", "preview.webm");
    film.addEventListener("playing", () => film.classList.add("plays"), { once: true });
    card.querySelector(".sd-card").append(film);
    play.observe(film);
  }
});
