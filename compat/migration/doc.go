// Package migration has the Go snippets of docs/MIGRATION.md: each call of client-go and the call of anykind that replaces it.
// A test keeps the page and these functions equal.
package migration
