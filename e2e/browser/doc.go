// Package browser has no code but tests: they build and start examples/httpd, chat and jobs and use them with headless
// Chromium, as a visitor does: they load pages, submit forms, and talk to each other in two windows. With -artifacts
// the pictures of the chat, of the jobs, and of the page of package inspect are kept.
//
//	DAIMON_TESTS=full go test -C e2e/browser -count=1 ./...
//
// -count=1, since go test knows nothing of the server, which another go command builds: it would take a result from its
// cache although the server has changed.
//
// They need Linux and the program chromium, and fail without it. Browser and server talk over the loopback; whatever
// else the browser looks for has no address. Its profile is thrown away with the test, and no process stays.
//
// It is a module of its own, so that the library's go.mod does not know what drives a browser.
package browser
