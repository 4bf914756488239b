// Package fieldsets gives tests of all modules access to package internal/managedfields. They compare it with
// structured-merge-diff and client-go.
package fieldsets

import "github.com/anykind/anykind/internal/managedfields"

// Set operations. The operands are FieldsV1 as maps.
var (
	Union        = managedfields.Union
	Intersection = managedfields.Intersection
	Difference   = managedfields.Difference
	Contains     = managedfields.Contains
	Paths        = managedfields.Paths
)

type (
	// Entry is an entry of metadata.managedFields.
	Entry = managedfields.Entry
	// Migration moves fields of several managers to the Apply entry of a manager.
	Migration = managedfields.Migration
)

// Reading and writing of entries.
var (
	Read   = managedfields.Read
	Encode = managedfields.Encode
)
