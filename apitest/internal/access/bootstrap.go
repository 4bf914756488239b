package access

import (
	_ "embed"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"
)

// bootstrapRoles are the user-facing ClusterRoles and their bindings that a real API server creates, as one of 1.36 stores them.
//
//go:embed bootstrap.json
var bootstrapRoles []byte

// Bootstrap returns the ClusterRoles and ClusterRoleBindings that exist from the start with RBAC: cluster-admin, admin, edit, view
// with what is aggregated into them, and those that let every user discover the API.
func Bootstrap() ([]map[string]any, error) {
	var objects []map[string]any
	if err := json.Unmarshal(bootstrapRoles, &objects); err != nil {
		return nil, fmt.Errorf("read the bootstrap roles: %w", err)
	}
	return objects, nil
}
