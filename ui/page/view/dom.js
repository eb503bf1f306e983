// Elements. Text is always text: nothing here takes markup.

/** @typedef {Node | string | null | undefined | false} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined | ((event: never) => unknown)>} Attributes */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element with attributes and children. An attribute that is a function is a listener, `true` is an attribute
 * without a value; one that is `false`, null or undefined is left out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  apply(element, attributes);
  element.append(
    ...children.filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/**
 * An element of a drawing.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Node} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  apply(element, attributes);
  element.append(...children);
  return element;
}

/**
 * @param {Element} element
 * @param {Attributes} attributes
 */
function apply(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") {
      element.addEventListener(name, /** @type {EventListener} */ (/** @type {unknown} */ (value)));
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/**
 * Sets the text if it is another one.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Sets or removes an attribute if it is another one.
 * @param {Element} element
 * @param {string} name
 * @param {string | number | null} value
 */
export function setAttribute(element, name, value) {
  if (value === null) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== `${/** @type {string | number} */ (value)}`) {
    element.setAttribute(name, `${/** @type {string | number} */ (value)}`);
  }
}

/**
 * Replaces the children if the key is another one than at the last call for this element.
 * @param {Element} element
 * @param {string} key
 * @param {() => Child[]} children
 */
export function setChildren(element, key, children) {
  if (keys.get(element) === key) return;
  keys.set(element, key);
  element.replaceChildren(
    ...children().filter((child) => child !== null && child !== undefined && child !== false),
  );
}

/** @type {WeakMap<Element, string>} */
const keys = new WeakMap();

/**
 * Returns whether keys typed now belong to this element.
 * @param {EventTarget | null} target
 */
export function takesText(target) {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement)
    return target.type !== "range" && target.type !== "checkbox";
  return target.matches("textarea, select, [data-keys]");
}
