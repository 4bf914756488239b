// Package migration has the Go snippets of docs/MIGRATION.md on controller-runtime: each call and the call of anykind that replaces
// it. The test of compat/migration keeps the page and these functions equal.
package migration
