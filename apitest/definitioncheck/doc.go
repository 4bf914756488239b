// Package definitioncheck compares a new version of a CustomResourceDefinition with the live objects of its kind, before the
// definition is changed:
//
//	report, err := definitioncheck.Check(ctx, client, definition, &definitioncheck.Options{Rules: cel.Rules{}})
//
// [Check] changes nothing. It needs the rights to get the definition and to list the objects, and to update the definition for a dry run.
//
// # Simulation
//
// The API server validates the definition itself, in a dry run. For objects, Check repeats the server's steps under the new
// definition: reading (prune and default by the stored version's schema, convert, prune by the requested version's schema), a
// creation of the same object, an update without a change, and reading the updated object.
//
// With the conversion strategy None, objects are listed once, in the storage version, and all versions are derived. With a conversion
// webhook they are listed in every served version, as the present webhook converts them. The new webhook is not run.
//
// # Memory
//
// Objects are checked one at a time. The report groups equal findings of many objects and has a limited number of groups, so memory
// does not grow with the number of objects.
package definitioncheck
