package definitioncheck

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// in returns a copy of an object in a version, by the conversion strategy None.
func (d *definition) in(version string, obj map[string]any) map[string]any {
	obj = runtime.DeepCopyJSON(obj)
	obj["apiVersion"] = d.group + "/" + version
	return obj
}

// decodeStored changes an object as the server does when it reads it from the storage.
func (d *definition) decodeStored(version string, obj map[string]any) {
	schema := d.versions[version].schema
	if !d.preservesUnknown {
		schema.PruneStored(obj)
	}
	schema.Default(obj)
}

// prune prunes an object as the server does after a conversion.
func (d *definition) prune(version string, obj map[string]any) {
	if !d.preservesUnknown {
		_, _ = d.versions[version].schema.Prune(obj) // metadata of the server is not malformed
	}
}

// decode returns the object of a request.
func (d *definition) decode(version string, obj map[string]any) map[string]any {
	obj = runtime.DeepCopyJSON(obj)
	d.versions[version].schema.Default(obj)
	d.prune(version, obj)
	return obj
}

// canUpdate reports whether update knows the schemas of a version and of the storage version.
func (d *definition) canUpdate(version string) bool {
	v := d.versions[version]
	storage := d.versions[d.storage]
	return v != nil && v.schema != nil && storage != nil && storage.schema != nil
}

// update returns the stored object after an update without a change in a version.
func (d *definition) update(version string, view map[string]any) map[string]any {
	stored := d.in(d.storage, d.decode(version, view))
	if version != d.storage {
		d.prune(d.storage, stored)
	}
	d.decodeStored(d.storage, stored)
	return stored
}
