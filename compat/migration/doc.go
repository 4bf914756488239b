// Package migration has the Go snippets of docs/MIGRATION.md: calls of client-go and their replacements in anykind. A test
// compares the page with these functions.
package migration
