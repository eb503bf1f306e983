// Starts the page.

import { App } from "./view/app.js";

new App().start();
