// Keys scroll what is wider than the page, once Tab has reached it.
const reach = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
for (const each of document.querySelectorAll("pre, .table-wrapper, div.math"))
  reach.observe(each);
