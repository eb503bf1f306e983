import js from "@eslint/js";
import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

const forbidden = (name, message) => ({ selector: `[property.name='${name}']`, message });

export default defineConfig(
  js.configs.recommended,
  {
    files: ["page/**/*.js"],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      // The type checker does it.
      "no-undef": "off",
      "@typescript-eslint/switch-exhaustiveness-check": [
        "error",
        { considerDefaultExhaustiveForUnions: true },
      ],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      // Text of a task never becomes markup: the content security policy refuses it as well.
      "no-restricted-syntax": [
        "error",
        forbidden("innerHTML", "use textContent"),
        forbidden("outerHTML", "use textContent"),
        forbidden("insertAdjacentHTML", "use append"),
      ],
      complexity: ["error", 20],
      "max-lines": ["error", 500],
      "max-lines-per-function": ["error", { max: 60, skipComments: true, skipBlankLines: true }],
    },
  },
  {
    files: ["test/**/*.js", "*.js"],
    languageOptions: {
      globals: Object.fromEntries(
        [
          "AbortController",
          "DOMException",
          "TextDecoder",
          "TextEncoder",
          "URL",
          "atob",
          "btoa",
          "console",
          "process",
          "setImmediate",
        ].map((name) => [name, "readonly"]),
      ),
    },
  },
  {
    // Functions in them run in the browser; tsc knows the names of both worlds.
    files: ["test/browser/**/*.js", "pictures/**/*.js"],
    rules: { "no-undef": "off", "no-control-regex": "off" },
  },
);
