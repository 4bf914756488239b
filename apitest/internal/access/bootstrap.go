package access

import (
	_ "embed"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"
)

// bootstrapRoles are the user-facing ClusterRoles and bindings created by a real API server, as stored by Kubernetes 1.36.
//
//go:embed bootstrap.json
var bootstrapRoles []byte

// Bootstrap returns the initial ClusterRoles and ClusterRoleBindings with RBAC: cluster-admin, admin, edit and view with their
// aggregated roles, and the roles for discovery by every user.
func Bootstrap() ([]map[string]any, error) {
	var objects []map[string]any
	if err := json.Unmarshal(bootstrapRoles, &objects); err != nil {
		return nil, fmt.Errorf("read the bootstrap roles: %w", err)
	}
	return objects, nil
}
