// Every text of the page that is no number of an answer.
const found = [];
const walk = document.createTreeWalker(document.getElementById("main"), NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  if (!walk.currentNode.parentElement.closest("[data-value]")) found.push(walk.currentNode.data);
}
return found;
