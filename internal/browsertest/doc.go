// Package browsertest opens pages in a real browser, for tests with the build tag browser.
package browsertest
