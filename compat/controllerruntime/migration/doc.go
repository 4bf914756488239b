// Package migration has the Go snippets of docs/MIGRATION.md for controller-runtime: calls and their replacements in anykind. The
// test of compat/migration compares the page with these functions.
package migration
