// Package objectkey formats the keys of objects for logs and error text.
package objectkey

import "k8s.io/apimachinery/pkg/types"

// Text returns namespace/name, or name alone without a namespace. NamespacedName.String returns "/name" then.
func Text(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}
