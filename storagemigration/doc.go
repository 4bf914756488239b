// Package storagemigration rewrites the stored objects of a CustomResourceDefinition in its storage version, so that older versions
// can be removed from the definition:
//
//	result, err := storagemigration.Migrate(ctx, client, "gears.example.com", nil)
//
// [Migrate] needs the right to read the definition, to update its subresource status, and to list and patch the objects. It can be
// interrupted at any time, SIGKILL included, and called again.
//
// # Rewriting
//
// An empty patch makes the API server encode the object in the storage version. If the object is stored in this version, nothing
// changes: no write to etcd, no new resourceVersion, no event. A repeated migration therefore costs a list and a patch of each
// object. Objects are listed as metadata, in pages. A concurrent write is never lost, because the patch has no fields.
//
// When every object is rewritten, status.storedVersions becomes the storage version, with the resourceVersion as precondition.
// If spec has changed since the start (metadata.generation), all objects are rewritten again.
//
// # Managed fields
//
// An entry of metadata.managedFields has the version of the request. If the definition no longer has this version, the API server
// rejects every server-side apply of the object, and any update or patch silently removes all entries. Entries of versions that are
// absent or not served are moved to the storage version. With a conversion webhook, field names may differ between versions:
// only the fields of metadata are moved, the others are left without an owner. Entries of served versions are kept, so the safe
// order is: stop serving the version, migrate, remove the version.
//
// # Built-in kinds
//
// Only definitions record the versions of stored objects. Built-in kinds are migrated by the API server's StorageVersionMigration.
package storagemigration
