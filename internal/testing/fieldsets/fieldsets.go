// Package fieldsets gives tests of other modules access to package internal/managedfields. They compare it with
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

// Types and functions of the migration.
type (
	Entry     = managedfields.Entry
	Migration = managedfields.Migration
)

// Reading and writing of entries.
var (
	Read   = managedfields.Read
	Encode = managedfields.Encode
)
