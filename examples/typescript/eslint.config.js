export { default } from "../../sdk-typescript/eslint.config.js";
